package io.deltaic.protocol

import java.io.{IOException, PrintWriter, StringWriter}

class PrintableSuite extends munit.FunSuite {

  private val binary = "PAR1\u0000\u0007\u001b[2J\u009f\ufffd end"

  private def stackTrace(e: Throwable): String = {
    val text = new StringWriter
    e.printStackTrace(new PrintWriter(text))
    text.toString
  }

  test("control and replacement characters are escaped, newlines and tabs stay") {
    assertEquals(Printable(binary), "PAR1\\u0000\\u0007\\u001b[2J\\u009f\\ufffd end")
    assertEquals(Printable("a\n\tb ü 漢"), "a\n\tb ü 漢")
  }

  test("the stack trace of an error contains no unprintable bytes of a damaged file") {
    val parser = new IOException("outer", new IOException(s"Unrecognized token '$binary'"))
    parser.addSuppressed(new IOException("suppressed"))
    val failure = DeltaicException("DELTAIC_INTERNAL_ERROR", Map("reason" -> binary), parser)
    val shown = stackTrace(failure.asInstanceOf[Throwable])
    assert(shown.contains("Unrecognized token 'PAR1\\u0000"), shown)
    assert(!shown.exists(c => c.isControl && c != '\n' && c != '\t' || c == '\ufffd'), shown)
  }

  test("a printable cause is unchanged") {
    val cause = new IOException("no such file")
    assert(DeltaicException("DELTAIC_INTERNAL_ERROR", Map.empty, cause).getCause eq cause)
  }

  test("a cyclic cause terminates") {
    val (a, b) = (new IOException("a"), new IOException(binary))
    a.initCause(b)
    b.initCause(a)
    assert(Printable.cause(a) != null)
  }
}
