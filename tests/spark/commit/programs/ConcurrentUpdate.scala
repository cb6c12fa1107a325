import java.util.concurrent.atomic.AtomicBoolean

import io.delta.exceptions.ConcurrentAppendException
import io.delta.tables.DeltaTable
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.functions.{col, udf}

/** Updates a table while another thread appends to it, and prints what it catches. */
object ConcurrentUpdate {

  def main(args: Array[String]): Unit = {
    val spark = SparkSession.builder().getOrCreate()
    val path = args(0)
    DeltaTable.create(spark).location(path).addColumn("id", "BIGINT")
      .property("delta.isolationLevel", "Serializable").execute()
    spark.range(5).write.format("delta").mode("append").save(path)

    Append.statement = () => { spark.sql(s"INSERT INTO delta.`$path` VALUES (100)"); () }
    val value = udf((id: Long) => Append.before(id)).asNondeterministic()
    try DeltaTable.forPath(spark, path).update(Map("id" -> value(col("id"))))
    catch { case conflict: ConcurrentAppendException => println(s"CAUGHT ${conflict.getCondition}") }
    println(s"ROWS ${DeltaTable.forPath(path).toDF.count()}")
  }
}

object Append {
  @volatile var statement: () => Unit = () => ()
  private val pending = new AtomicBoolean(true)

  /** Appends, once, and returns the value. */
  def before(value: Long): Long = {
    if (pending.compareAndSet(true, false)) {
      val other = new Thread(() => statement())
      other.start()
      other.join()
    }
    value
  }
}
