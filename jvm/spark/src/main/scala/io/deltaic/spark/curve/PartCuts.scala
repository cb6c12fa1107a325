package io.deltaic.spark.curve

/**
 * Cuts the positions of a group into parts of about the same number of rows. Rows of one position, of which there
 * may be very many, are spread over all parts that end or begin with it.
 *
 * @param first the number of the first part
 * @param cuts the last positions of all parts but the last, ascending
 */
private[spark] final case class PartCuts(first: Int, cuts: Array[Long]) {

  /** @param row the number of the row among those of its task, by which rows of one position are spread */
  def part(position: Long, row: Long): Int = {
    val low = firstAtLeast(position)
    if (low == cuts.length || cuts(low) != position) first + low
    else {
      val numParts = firstAtLeast(position + 1) - low + 1
      first + low + (row % numParts).toInt
    }
  }

  private def firstAtLeast(position: Long): Int = {
    var low = 0
    var high = cuts.length
    while (low < high) {
      val middle = (low + high) >>> 1
      if (cuts(middle) < position) low = middle + 1 else high = middle
    }
    low
  }
}

private[spark] object PartCuts {

  /** @param positions of a sample of the rows, ascending */
  def of(positions: IndexedSeq[Long], numParts: Int, first: Int): PartCuts =
    PartCuts(first, RangeBoundaries.lastOfRanges(positions.size, numParts).map(positions).toArray)
}
