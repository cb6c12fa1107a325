"""What tests share: where things are, and Spark sessions in processes of their own."""
