package io.deltaic.protocol

import java.io.ByteArrayOutputStream
import java.net.URI
import java.nio.charset.StandardCharsets.UTF_8

import org.apache.hadoop.fs.Path

/**
 * Paths as spelled in the log: URIs, relative to the table or absolute (Protocol § Add File and Remove File).
 *
 * Decoding is lenient where `java.net.URI` is not: a log written by hand, or by a careless writer, may contain
 * characters that a URI must escape, and these stand for themselves.
 */
object LogPath {

  private val absoluteUri = "^[A-Za-z][A-Za-z0-9+.-]*:/.*".r

  /**
   * The file that an action references. A URI without a scheme, or without an authority in the table's own scheme, gets
   * that of the table.
   */
  def toAbsolute(table: Path, logPath: String): Path = logPath match {
    case absoluteUri() =>
      val colon = logPath.indexOf(':')
      val scheme = logPath.substring(0, colon)
      val (authority, path) = splitAuthority(logPath.substring(colon + 1))
      val root = table.toUri
      val store =
        if (authority == null && isSame(scheme, root.getScheme)) root.getAuthority else authority
      new Path(scheme, store, decode(path))
    case _ if logPath.startsWith("/") =>
      val root = table.toUri
      new Path(root.getScheme, root.getAuthority, decode(logPath))
    case _ =>
      val root = table.toUri
      new Path(
        root.getScheme,
        root.getAuthority,
        s"${root.getPath.stripSuffix("/")}/${decode(logPath)}"
      )
  }

  def isAbsolute(logPath: String): Boolean =
    logPath.startsWith("/") || absoluteUri.matches(logPath)

  /**
   * The spelling of a file in the log: relative if it is below the table, else absolute. Both paths must be qualified
   * in the same way.
   */
  def relativize(table: Path, file: Path): String = {
    val relative = relativeTo(table, file)
    if (relative == null) absolute(file) else encode(relative)
  }

  /** Encodes a relative file path of a directory listing as spelled in the log. */
  def encode(relative: String): String = {
    val encoded = new URI(null, null, s"/$relative", null).getRawPath.substring(1)
    // A colon in the first segment would be parsed as the end of a scheme.
    val (first, rest) = encoded.span(_ != '/')
    first.replace(":", "%3A") + rest
  }

  /**
   * One spelling for each file, so that a `remove` matches its `add` regardless of how either is spelled: decoded,
   * relative to the table if the file is below it, else absolute with its scheme.
   */
  private[deltaic] def canonical(table: Path, logPath: String): String =
    if (isPlainRelative(logPath)) logPath
    else {
      val file = toAbsolute(table, logPath)
      val relative = relativeTo(table, file)
      if (relative == null) file.toString else relative
    }

  private def relativeTo(table: Path, file: Path): String = {
    val root = table.toUri
    val uri = file.toUri
    val prefix = root.getPath.stripSuffix("/") + "/"
    val sameStore = isSame(root.getScheme, uri.getScheme) &&
      isSame(root.getAuthority, uri.getAuthority)
    if (sameStore && uri.getPath.startsWith(prefix) && uri.getPath.length > prefix.length) {
      uri.getPath.substring(prefix.length)
    } else null
  }

  private def isSame(a: String, b: String): Boolean =
    if (a == null || b == null) a == b else a.equalsIgnoreCase(b)

  /** The absolute spelling of a file in the log. */
  def absolute(file: Path): String = {
    val uri = file.toUri
    val path = encode(uri.getPath.stripPrefix("/"))
    val authority = Option(uri.getAuthority).filter(_.nonEmpty).fold("")(a => s"//$a")
    Option(uri.getScheme).fold(s"/$path")(scheme => s"$scheme:$authority/$path")
  }

  /** Whether a path is relative, without escapes, and already normalized, as nearly every path is. */
  private def isPlainRelative(path: String): Boolean = {
    var i = 0
    var previous = '/'
    var plain = path.nonEmpty && path.charAt(path.length - 1) != '/'
    while (plain && i < path.length) {
      val c = path.charAt(i)
      plain = c != '%' && c != ':' && c != '\\' && !(previous == '/' && (c == '/' || c == '.'))
      previous = c
      i += 1
    }
    plain
  }

  private def splitAuthority(afterScheme: String): (String, String) =
    if (afterScheme.startsWith("//")) {
      val slash = afterScheme.indexOf('/', 2)
      val end = if (slash < 0) afterScheme.length else slash
      val authority = afterScheme.substring(2, end)
      (
        if (authority.isEmpty) null else authority,
        "/" + afterScheme.substring(end).stripPrefix("/")
      )
    } else (null, afterScheme)

  /** Percent-decodes as UTF-8. A percent sign that is not followed by two hex digits stands for itself. */
  private[protocol] def decode(encoded: String): String =
    if (encoded.indexOf('%') < 0) encoded
    else {
      val bytes = encoded.getBytes(UTF_8)
      val out = new ByteArrayOutputStream(bytes.length)
      var i = 0
      while (i < bytes.length) {
        val value =
          if (bytes(i) == '%' && i + 2 < bytes.length) {
            val high = Character.digit(bytes(i + 1).toChar, 16)
            val low = Character.digit(bytes(i + 2).toChar, 16)
            if (high < 0 || low < 0) -1 else high << 4 | low
          } else -1
        if (value < 0) out.write(bytes(i).toInt) else { out.write(value); i += 2 }
        i += 1
      }
      out.toString(UTF_8)
    }
}
