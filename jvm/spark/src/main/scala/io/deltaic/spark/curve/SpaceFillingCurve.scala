package io.deltaic.spark.curve

/**
 * An order of the cells of a grid in which cells that are close on the curve are close in the grid. A grid has
 * `2^bits` cells along each of its axes.
 */
private[spark] sealed trait SpaceFillingCurve extends Serializable {

  /**
   * The position of a cell on the curve, from 0.
   *
   * @param cell its coordinates, each less than `2^bits`; they are overwritten
   * @param bits of each coordinate; all coordinates together have at most 63
   */
  def position(cell: Array[Int], bits: Int): Long
}

/** Morton's order: the bits of the coordinates take turns, from the highest to the lowest. */
private[spark] case object ZOrderCurve extends SpaceFillingCurve {

  override def position(cell: Array[Int], bits: Int): Long = {
    var position = 0L
    var bit = bits - 1
    while (bit >= 0) {
      var axis = 0
      while (axis < cell.length) {
        position = (position << 1) | ((cell(axis) >>> bit) & 1)
        axis += 1
      }
      bit -= 1
    }
    position
  }
}

/**
 * Hilbert's curve: cells that follow each other are neighbours in the grid. The coordinates are transformed as
 * in J. Skilling, "Programming the Hilbert curve" (AIP Conference Proceedings 707, 2004); then their bits take turns.
 */
private[spark] case object HilbertCurve extends SpaceFillingCurve {

  override def position(cell: Array[Int], bits: Int): Long = {
    if (cell.length > 1 && bits > 0) transform(cell, bits)
    ZOrderCurve.position(cell, bits)
  }

  private def transform(cell: Array[Int], bits: Int): Unit = {
    val last = cell.length - 1
    var mask = 1 << (bits - 1)
    while (mask > 1) {
      val lower = mask - 1
      var axis = 0
      while (axis <= last) {
        if ((cell(axis) & mask) != 0) cell(0) ^= lower
        else {
          val exchanged = (cell(0) ^ cell(axis)) & lower
          cell(0) ^= exchanged
          cell(axis) ^= exchanged
        }
        axis += 1
      }
      mask >>= 1
    }
    var axis = 1
    while (axis <= last) {
      cell(axis) ^= cell(axis - 1)
      axis += 1
    }
    var inverted = 0
    mask = 1 << (bits - 1)
    while (mask > 1) {
      if ((cell(last) & mask) != 0) inverted ^= mask - 1
      mask >>= 1
    }
    axis = 0
    while (axis <= last) {
      cell(axis) ^= inverted
      axis += 1
    }
  }
}
