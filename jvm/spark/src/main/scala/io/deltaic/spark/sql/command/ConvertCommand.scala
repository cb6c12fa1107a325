package io.deltaic.spark.sql.command

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.execution.command.LeafRunnableCommand
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.{Row, SparkSession, classic}

import io.deltaic.spark.catalog.TableLocation
import io.deltaic.spark.commit.CommandRequest
import io.deltaic.spark.convert.ConversionTarget

/**
 * CONVERT TO DELTA: Python executes it, with the files that the JVM reads. A table of the catalog is changed there after the
 * commit. If that did not happen, the statement does it when it is run again.
 *
 * The result has no row if it is a Delta table already.
 *
 * @param name of a table, or the format and the path of files
 * @param partitioning the partition columns, if they are stated
 */
private[spark] final case class ConvertCommand(
    name: Seq[String],
    partitioning: Option[StructType],
    collectsStatistics: Boolean,
    override val output: Seq[Attribute]
) extends LeafRunnableCommand {

  override def run(session: SparkSession): Seq[Row] = {
    val spark = session.asInstanceOf[classic.SparkSession]
    val target = ConversionTarget.of(spark, name)
    val log = TableLocation.log(spark, target.location)
    val rows =
      if (target.isDelta) Nil
      else if (log.exists) {
        log.latest() // It is an error if it cannot be read.
        Nil
      } else {
        val arguments = Seq(
          "table" -> log.table.toString,
          "entry" -> target.entryMessage,
          "partitionSchema" -> partitioning.map(_.json),
          "collectStatistics" -> collectsStatistics
        )
        ResultRows.of(CommandRequest(ConvertCommand.Name, arguments).rows(spark), output)
      }
    target.register(spark)
    rows
  }
}

private[spark] object ConvertCommand {
  private val Name = "convertToDelta"

  def of(
      name: Seq[String],
      partitioning: Option[StructType],
      collectsStatistics: Boolean
  ): ConvertCommand =
    ConvertCommand(name, partitioning, collectsStatistics, ResultRows.output(Name))
}
