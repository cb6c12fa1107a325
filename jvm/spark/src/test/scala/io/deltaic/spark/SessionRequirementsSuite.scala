package io.deltaic.spark

import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path}

import org.apache.commons.io.FileUtils
import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.catalyst.parser.{ParameterContext, ParserInterface}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.deltaic.ForeignSessions
import org.apache.spark.sql.execution.SparkSqlParser

import io.deltaic.protocol.DeltaicThrowable

/** A session that lacks a part of Deltaic is refused at its first statement, regardless of how it was built. */
class SessionRequirementsSuite extends munit.FunSuite {

  private val Ours = classOf[DeltaicExtension].getName
  private var table: Path = _

  override def beforeAll(): Unit = {
    table = Files.createTempDirectory("deltaic-session")
    val log = Files.createDirectory(table.resolve("_delta_log"))
    val schema =
      """{\"type\":\"struct\",\"fields\":[{\"name\":\"id\",\"type\":\"long\",\"nullable\":true,\"metadata\":{}}]}"""
    Files.write(
      log.resolve("00000000000000000000.json"),
      s"""{"protocol":{"minReaderVersion":1,"minWriterVersion":2}}
         |{"metaData":{"id":"1","format":{"provider":"parquet","options":{}},"schemaString":"$schema","partitionColumns":[],"configuration":{}}}
         |""".stripMargin.getBytes(UTF_8)
    )
  }

  override def afterAll(): Unit = FileUtils.deleteDirectory(table.toFile)

  private def withSession(extensions: String*)(test: SparkSession => Unit): Unit = {
    val spark = org.apache.spark.sql.SparkSession.builder()
      .master("local[1]")
      .config("spark.ui.enabled", "false")
      .config("spark.sql.extensions", extensions.mkString(","))
      .config("spark.sql.catalog.spark_catalog", classOf[DeltaicCatalog].getName)
      .getOrCreate()
    try test(spark.asInstanceOf[SparkSession])
    finally spark.stop()
  }

  private def statements: Seq[SparkSession => Any] = Seq(
    _.read.format("delta").load(table.toString).collect(),
    _.sql(s"SELECT * FROM delta.`$table`").collect(),
    _.sql(s"DELETE FROM delta.`$table`"),
    _.sql(s"INSERT INTO delta.`$table` VALUES (1)"),
    _.range(1).toDF().write.format("delta").mode("append").save(table.toString)
  )

  private def assertRefused(spark: SparkSession, lacking: String): Unit =
    statements.foreach { statement =>
      val refused = intercept[DeltaicThrowable](statement(spark))
      assertEquals(refused.condition, "DELTAIC_RULES_MISSING")
      assertEquals(refused.parameters("rules"), lacking)
      assert(refused.getMessage.contains(s"name $Ours last in spark.sql.extensions"))
    }

  private def assertAccepted(spark: SparkSession): Unit = {
    assertEquals(spark.read.format("delta").load(table.toString).count(), 0L)
    assertEquals(spark.sql(s"SELECT * FROM delta.`$table`").count(), 0L)
  }

  for (parser <- Seq(classOf[ParserOfSpark], classOf[ParserOfPlans], classOf[ParserOfStatements]))
    test(s"a parser after ours that does not delegate to it is refused: ${parser.getSimpleName}") {
      withSession(Ours, parser.getName)(assertRefused(_, "StatementParser"))
    }

  test("the same parser before ours is accepted") {
    withSession(classOf[ParserOfSpark].getName, Ours)(assertAccepted)
  }

  test("a parser after ours that delegates all statements is accepted") {
    withSession(Ours, classOf[DelegatingParser].getName)(assertAccepted)
  }

  test("a session built without one of the rules is refused, for each rule") {
    withSession(Ours) { spark =>
      val rules = Seq(
        DeltaicExtension.resolution,
        DeltaicExtension.postHocResolution,
        DeltaicExtension.planNormalization,
        DeltaicExtension.optimizer
      ).flatten.map(_(spark)) ++ DeltaicExtension.strategies
      assertEquals(rules.length, DeltaicExtension.count)
      assertAccepted(ForeignSessions.without(spark, "nothing"))
      rules.map(_.getClass.getName).foreach { rule =>
        val lacking = rule.substring(rule.lastIndexOf('.') + 1).stripSuffix("$")
        assertRefused(ForeignSessions.without(spark, rule), lacking)
      }
    }
  }
}

/** Foreign extensions whose parsers are Spark's, or delegate to the next one in part. */
class ParserOfSpark extends (SparkSessionExtensions => Unit) {
  override def apply(extensions: SparkSessionExtensions): Unit =
    extensions.injectParser((_, _) => new SparkSqlParser)
}

/** Delegates only the method that `spark.sql` does not call. */
class ParserOfPlans extends (SparkSessionExtensions => Unit) {
  override def apply(extensions: SparkSessionExtensions): Unit =
    extensions.injectParser((_, next) => new PlansFrom(next))
}

/** Delegates statements, but not the queries of views. */
class ParserOfStatements extends (SparkSessionExtensions => Unit) {
  override def apply(extensions: SparkSessionExtensions): Unit =
    extensions.injectParser((_, next) => new StatementsFrom(next))
}

class DelegatingParser extends (SparkSessionExtensions => Unit) {
  override def apply(extensions: SparkSessionExtensions): Unit =
    extensions.injectParser { (_, next) =>
      new StatementsFrom(next) {
        override def parseQuery(sqlText: String): LogicalPlan = next.parseQuery(sqlText)
      }
    }
}

private class PlansFrom(next: ParserInterface) extends SparkSqlParser {
  override def parsePlan(sqlText: String): LogicalPlan = next.parsePlan(sqlText)
}

private class StatementsFrom(next: ParserInterface) extends PlansFrom(next) {
  override def parsePlanWithParameters(
      sqlText: String,
      parameters: ParameterContext
  ): LogicalPlan = next.parsePlanWithParameters(sqlText, parameters)
}
