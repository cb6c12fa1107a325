package io.deltaic.protocol

/**
 * Makes strings printable in logs and errors. Messages quote the content of damaged files, which may be anything:
 * unprintable characters are escaped.
 */
private[deltaic] object Printable {

  def apply(text: String): String =
    if (!text.exists(isControl)) text
    else text.flatMap(c => if (isControl(c)) f"\\u${c.toInt}%04x" else c.toString)

  /** The message of an exception for a log. */
  def messageOf(e: Throwable): String = apply(Option(e.getMessage).getOrElse(e.toString))

  /** `e` itself, unless its stack trace would contain unprintable characters: a parser quotes its input. */
  def cause(e: Throwable): Throwable = {
    val links = chain(e)
    if (links.forall(isPrintable)) e
    else
      links.foldRight(null: Throwable) { (link, next) =>
        val shown = new Exception(apply(link.toString), next)
        shown.setStackTrace(link.getStackTrace)
        shown
      }
  }

  /** Stops at a cycle of causes. */
  private def chain(e: Throwable): Seq[Throwable] = {
    val seen = new java.util.IdentityHashMap[Throwable, Unit]
    Iterator.iterate(e)(_.getCause)
      .takeWhile(link => link != null && !seen.containsKey(link))
      .tapEach(seen.put(_, ()))
      .toSeq
  }

  private def isPrintable(e: Throwable): Boolean =
    e.getMessage == null || !e.getMessage.exists(isControl)

  private def isControl(c: Char): Boolean =
    Character.isISOControl(c) && c != '\n' && c != '\t' || c == '\uFFFD'
}
