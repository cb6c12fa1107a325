package io.deltaic.protocol

/** Names of columns and fields, which are case-insensitive in Delta tables. */
private[deltaic] object ColumnNames {

  /**
   * A name folded to one case: two names are the same if `equalsIgnoreCase` says so, by which Spark resolves columns. It
   * is folded letter by letter. For `toLowerCase`, a sigma at the end of a word is another letter.
   */
  def folded(name: String): String = {
    val letters =
      name.codePoints.map(letter => Character.toLowerCase(Character.toUpperCase(letter))).toArray
    new String(letters, 0, letters.length)
  }
}
