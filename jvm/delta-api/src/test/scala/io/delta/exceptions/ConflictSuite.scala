package io.delta.exceptions

import java.util.concurrent.atomic.AtomicBoolean

import io.delta.DeltaSession
import io.delta.tables.DeltaTable
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.functions.{col, udf}

class ConflictSuite extends munit.FunSuite with DeltaSession {

  /** An UPDATE of all rows, during which the statement is committed. */
  private def update(path: String)(meanwhile: SparkSession => Unit): Unit = {
    Meanwhile.run(() => meanwhile(spark))
    val value = udf((v: Long) => Meanwhile.once(v)).asNondeterministic()
    DeltaTable.forPath(spark, path).update(Map("v" -> value(col("v"))))
  }

  private val serializable = "'delta.isolationLevel' = 'Serializable'"

  directory.test("a program catches ConcurrentAppendException") { dir =>
    val path = created(dir, properties = serializable)
    val caught =
      try {
        update(path)(_.sql(s"INSERT INTO delta.`$path` VALUES (100, 0)"))
        None
      } catch { case conflict: ConcurrentAppendException => Some(conflict) }
    assertEquals(caught.map(_.getCondition), Some("DELTAIC_CONCURRENT_APPEND"))
    assert(caught.get.getMessage.contains("UPDATE"), caught.get.getMessage)
    assertEquals(rows(path), (0L until 10L).map(id => id -> 2 * id) :+ (100L -> 0L))
  }

  directory.test("each conflict is of the class of its name") { dir =>
    val path = created(dir, properties = serializable)
    intercept[MetadataChangedException] {
      update(path)(_.sql(s"ALTER TABLE delta.`$path` ADD COLUMN w STRING"))
    }
    intercept[ProtocolChangedException] {
      update(path)(_ => DeltaTable.forPath(spark, path).addFeatureSupport("deletionVectors"))
    }
    val all = intercept[DeltaConcurrentModificationException] {
      update(path)(_.sql(s"DELETE FROM delta.`$path` WHERE id = 1"))
    }
    val classes =
      Set[Class[_]](
        classOf[ConcurrentDeleteReadException],
        classOf[ConcurrentDeleteDeleteException]
      )
    assert(classes(all.getClass), all)
    assert(all.isInstanceOf[java.util.ConcurrentModificationException])
  }

  test("a program creates one with a message of its own") {
    val error = new ConcurrentWriteException("a message")
    assertEquals(error.getMessage, "a message")
  }
}

/** What an executor of this JVM runs during a statement. */
private object Meanwhile {
  @volatile private var action = () => ()
  private val pending = new AtomicBoolean

  def run(next: () => Unit): Unit = {
    action = next
    pending.set(true)
  }

  /** Runs the action before it returns the first value. */
  def once(value: Long): Long = {
    if (pending.compareAndSet(true, false)) {
      val other = new Thread(() => action())
      other.start()
      other.join()
    }
    value + 1
  }
}
