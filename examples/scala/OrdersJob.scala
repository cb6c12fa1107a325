import io.delta.exceptions.ConcurrentAppendException
import io.delta.implicits._
import io.delta.tables.DeltaTable
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.functions.col

/** Merges a day's changes into a table, in Scala. Run it with spark-submit; its argument is the table's path. */
object OrdersJob {

  def main(args: Array[String]): Unit = run(SparkSession.builder().getOrCreate(), args(0))

  def run(spark: SparkSession, path: String): Unit = {
    DeltaTable.createOrReplace(spark)
      .location(path)
      .addColumn("id", "BIGINT", nullable = false)
      .addColumn("state", "STRING")
      .property("delta.enableDeletionVectors", "true")
      .execute()
    spark.range(100).selectExpr("id", "'open' AS state").write.mode("append").delta(path)

    val changes = spark.range(90, 110)
      .selectExpr("id", "if(id % 2 = 0, 'shipped', 'cancelled') AS state")
    val orders = DeltaTable.forPath(spark, path)
    try
      orders.as("o").merge(changes.as("c"), "o.id = c.id")
        .whenMatched("c.state = 'cancelled'").delete()
        .whenMatched().updateAll()
        .whenNotMatched(col("c.state") =!= "cancelled").insertAll()
        .execute()
        .show()
    catch {
      case conflict: ConcurrentAppendException =>
        println(s"Run it again: ${conflict.getMessage}")
    }
    orders.toDF.groupBy("state").count().orderBy("state").show()
  }
}
