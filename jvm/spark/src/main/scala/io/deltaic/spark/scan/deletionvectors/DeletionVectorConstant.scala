package io.deltaic.spark.scan.deletionvectors

import org.apache.spark.unsafe.types.UTF8String

import io.deltaic.protocol.{AddFile, DeletionVectorDescriptor}

/**
 * A file's deletion vector as the value of a constant column, so that the descriptor travels with
 * the split that needs it and no driver-side map has to be broadcast.
 *
 * Six lines: storage type, offset (`-` when absent), size, cardinality, path or inline bytes, and
 * the data file, which errors name. Neither Z85 nor an encoded path contains a line feed.
 */
private[spark] object DeletionVectorConstant {

  def encode(file: AddFile): UTF8String = file.deletionVector match {
    case None => null
    case Some(dv) =>
      val offset = dv.offset.fold("-")(_.toString)
      UTF8String.fromString(
        Seq(
          dv.storageType,
          offset,
          dv.sizeBytes.toString,
          dv.cardinality.toString,
          dv.pathOrInlineDv,
          file.path
        ).mkString("\n")
      )
  }

  /** The descriptor, and the path of the data file it belongs to. */
  def decode(value: UTF8String): (DeletionVectorDescriptor, String) =
    value.toString.split("\n", 6) match {
      case Array(storageType, offset, size, cardinality, pathOrInline, dataFile) =>
        val descriptor = DeletionVectorDescriptor(
          storageType,
          pathOrInline,
          Option.when(offset != "-")(offset.toInt),
          size.toInt,
          cardinality.toLong
        )
        (descriptor, dataFile)
      case _ => throw new IllegalArgumentException(s"not a deletion vector constant: $value")
    }
}
