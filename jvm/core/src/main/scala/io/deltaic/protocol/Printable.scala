package io.deltaic.protocol

/**
 * Text for logs and errors. What a damaged file holds is quoted as it is, and may be anything: what no terminal or log
 * shows is spelled out.
 */
private[deltaic] object Printable {

  def apply(text: String): String =
    if (!text.exists(isControl)) text
    else text.flatMap(c => if (isControl(c)) f"\\u${c.toInt}%04x" else c.toString)

  /** What a log says of an exception. */
  def messageOf(e: Throwable): String = apply(Option(e.getMessage).getOrElse(e.toString))

  /** `e` itself, unless its stack trace would show such text: a parser quotes what it cannot parse. */
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

  /** It ends where a cause leads back to itself. */
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
