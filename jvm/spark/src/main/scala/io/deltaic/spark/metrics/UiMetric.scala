package io.deltaic.spark.metrics

import java.util.Locale

import org.apache.spark.sql.connector.metric.{CustomMetric, CustomTaskMetric}

/**
 * A metric of a scan or of a write in Spark's UI. The UI creates it by its class to show its values, so that each
 * metric has a class of its own, with a constructor without parameters.
 *
 * @param description as the UI shows it
 */
private[metrics] abstract class UiMetric(
    override val name: String,
    override val description: String
) extends CustomMetric {

  override final def aggregateTaskMetrics(values: Array[Long]): String = shown(values.sum)

  protected def shown(total: Long): String

  /** A value of the metric, which the driver reports. */
  def of(value: Long): CustomTaskMetric = UiMetric.Value(name, value)
}

private[metrics] object UiMetric {
  final case class Value(name: String, value: Long) extends CustomTaskMetric
}

private[metrics] abstract class CountMetric(name: String, description: String)
    extends UiMetric(name, description) {
  override protected def shown(total: Long): String = "%,d".formatLocal(Locale.US, total)
}

private[metrics] abstract class SizeMetric(name: String, description: String)
    extends UiMetric(name, description) {

  /** In the units of Spark's own metrics. */
  override protected def shown(total: Long): String = {
    val units = Seq("B", "KiB", "MiB", "GiB", "TiB", "PiB")
    val power = units.indices.findLast(p => total >= 2 * (1L << (10 * p))).getOrElse(0)
    if (power == 0) s"$total B"
    else "%.1f %s".formatLocal(Locale.US, total.toDouble / (1L << (10 * power)), units(power))
  }
}

private[metrics] abstract class DurationMetric(name: String, description: String)
    extends UiMetric(name, description) {
  override protected def shown(total: Long): String =
    if (total < 1000) s"$total ms" else "%.1f s".formatLocal(Locale.US, total / 1000.0)
}
