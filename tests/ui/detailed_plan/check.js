localStorage.setItem("detailed-labels-checked", "true");
