package io.deltaic.protocol

/**
 * Where a deletion vector's bytes are (Protocol § Deletion Vector Descriptor Schema).
 *
 * @param storageType `u`: a file named by a UUID, relative to the table; `i`: inline; `p`: a file at an absolute path
 * @param pathOrInlineDv what the storage type says: prefix and Z85 of a UUID, Z85 of the bitmap, or a path
 * @param offset where the DV starts in its file; absent for inline vectors
 * @param sizeBytes size of the serialized bitmap, before any encoding
 * @param cardinality number of rows the DV removes from the file
 */
final case class DeletionVectorDescriptor(
    storageType: String,
    pathOrInlineDv: String,
    offset: Option[Int] = None,
    sizeBytes: Int,
    cardinality: Long
) {

  /** Identifies the vector among those of one data file (Protocol § Derived Fields). */
  def uniqueId: String = s"$storageType$pathOrInlineDv" + offset.fold("")(o => s"@$o")
}
