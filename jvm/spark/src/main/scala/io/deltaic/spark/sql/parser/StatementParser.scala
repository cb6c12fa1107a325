package io.deltaic.spark.sql.parser

import scala.jdk.CollectionConverters._

import org.antlr.v4.runtime.misc.{Interval, ParseCancellationException}
import org.antlr.v4.runtime.{
  BailErrorStrategy,
  CharStreams,
  CommonTokenStream,
  ParserRuleContext,
  Token
}
import org.apache.spark.sql.catalyst.analysis.UnresolvedTable
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.parser.{
  NamedParameterContext,
  ParameterContext,
  ParserInterface
}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.{FunctionIdentifier, TableIdentifier}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.internal.VariableSubstitution
import org.apache.spark.sql.types.{DataType, StructType}

import io.deltaic.protocol.DeltaicException
import io.deltaic.spark.catalog.TableLocation
import io.deltaic.spark.convert.ConversionTarget
import io.deltaic.spark.optimize.{OptimizeRequest, PurgeRequest, UniformUpgrade}
import io.deltaic.spark.shim.DelegatingParser
import io.deltaic.spark.sql.analysis.TableChanges
import io.deltaic.spark.sql.command.{
  CloneTable,
  CommandInPython,
  ConvertCommand,
  DescribeCommand,
  DropFeatureCommand,
  ParquetByPath,
  RewriteTable,
  SyncIdentityCommand,
  TableAtPath,
  TableToDescribe,
  VacuumCommand
}
import io.deltaic.spark.sql.grammar.DeltaicSqlParser._
import io.deltaic.spark.sql.grammar.{DeltaicSqlBaseVisitor, DeltaicSqlLexer, DeltaicSqlParser}

/**
 * Parses the statements of `DeltaicSql.g4`, and delegates all others to Spark.
 *
 * Our grammar is tried first because Spark's parses some of them as other statements: `DESCRIBE
 * HISTORY t` would describe a column. As in Spark's statements, variables such as `${name}` are substituted. It adds
 * markers to the plans of the others (see [[ParsedStatement]]).
 */
private[spark] final class StatementParser(
    session: SparkSession,
    override protected val spark: ParserInterface
) extends ParserInterface
    with DelegatingParser {

  private val parsed = new ParsedStatement(session)

  override def parsePlan(sqlText: String): LogicalPlan =
    ours(sqlText).getOrElse(parsed.of(spark.parsePlan(sqlText)))

  override def parsePlanWithParameters(sqlText: String, parameters: ParameterContext): LogicalPlan =
    ours(sqlText).getOrElse(parsed.of(spark.parsePlanWithParameters(sqlText, parameters)))

  private val variables = new VariableSubstitution

  private def ours(sqlText: String): Option[LogicalPlan] = {
    val lexer = new DeltaicSqlLexer(CharStreams.fromString(variables.substitute(sqlText)))
    lexer.removeErrorListeners()
    val parser = new DeltaicSqlParser(new CommonTokenStream(lexer))
    parser.removeErrorListeners()
    parser.setErrorHandler(new BailErrorStrategy)
    val statement =
      try Some(parser.singleStatement())
      catch { case _: ParseCancellationException => None }
    statement.map((new Builder).visit(_))
  }

  private final class Builder extends DeltaicSqlBaseVisitor[LogicalPlan] {

    override def visitSingleStatement(statement: SingleStatementContext): LogicalPlan =
      visit(statement.statement)

    override def visitDescribeHistory(statement: DescribeHistoryContext): LogicalPlan = {
      val limit = Option(statement.limit).map(n => BigInt(n.getText).min(Int.MaxValue).toInt)
      DescribeCommand.of(
        DescribeCommand.History,
        described(statement.target, "DESCRIBE HISTORY"),
        limit.map("limit" -> _).toMap
      )
    }

    override def visitDescribeDetail(statement: DescribeDetailContext): LogicalPlan =
      DescribeCommand.of(
        DescribeCommand.Detail,
        described(statement.target, "DESCRIBE DETAIL"),
        Map.empty
      )

    override def visitSyncIdentity(statement: SyncIdentityContext): LogicalPlan =
      SyncIdentityCommand(
        table(statement.table, "ALTER TABLE ... ALTER COLUMN"),
        parts(statement.column)
      )

    override def visitDropFeature(statement: DropFeatureContext): LogicalPlan =
      DropFeatureCommand(
        table(statement.table, "ALTER TABLE ... DROP FEATURE"),
        feature(statement.feature),
        truncatesHistory = statement.HISTORY != null
      )

    override def visitOptimizeTable(statement: OptimizeTableContext): LogicalPlan =
      RewriteTable.of(
        target(statement.target, "OPTIMIZE"),
        OptimizeRequest(
          Option(statement.predicate).map(text),
          isFull = statement.FULL != null,
          zOrderBy = Option(statement.columns).toSeq.flatMap(_.zOrderBy.asScala).map(parts)
        )
      )

    override def visitPurgeTable(statement: PurgeTableContext): LogicalPlan =
      RewriteTable.of(
        target(statement.target, "REORG"),
        PurgeRequest(Option(statement.predicate).map(text))
      )

    override def visitUpgradeUniform(statement: UpgradeUniformContext): LogicalPlan =
      RewriteTable.of(target(statement.target, "REORG"), UniformUpgrade(statement.version.getText))

    override def visitRestore(statement: RestoreContext): LogicalPlan = {
      val asOf = version(statement.asOf).map("version" -> _) ++
        timestamp(statement.asOf).map("timestamp" -> _)
      CommandInPython.of("restore", table(statement.table, "RESTORE"), asOf.toMap)
    }

    private def version(asOf: AsOfContext): Option[String] = Option(asOf.version).map { number =>
      if (number.getType == INTEGER) number.getText else unquoted(number)
    }

    private def timestamp(asOf: AsOfContext): Option[String] =
      Option(asOf.timestamp).map(unquoted)

    override def visitGenerate(statement: GenerateContext): LogicalPlan =
      CommandInPython.of(
        "generate",
        table(statement.table, "GENERATE"),
        Map("mode" -> parts(statement.manifest).mkString("."))
      )

    override def visitVacuum(statement: VacuumContext): LogicalPlan =
      VacuumCommand.of(
        if (statement.target.path != null) TableAtPath(unquoted(statement.target.path))
        else table(statement.target.name, "VACUUM"),
        VacuumOptions.of(statement.vacuumOption.asScala.toSeq, text)
      )

    override def visitCloneTable(statement: CloneTableContext): LogicalPlan = {
      val clauses = Option(statement.clauses).fold("")(text)
      val definition = s"${text(statement.definition)} USING ${TableLocation.provider} $clauses"
      val request = CloneClauses.of(spark.parsePlan(definition)).copy(
        isShallow = statement.SHALLOW != null,
        version = Option(statement.asOf).flatMap(version),
        timestamp = Option(statement.asOf).flatMap(timestamp)
      )
      val source = parts(statement.source)
      val child =
        if (ConversionTarget.isParquetPath(source)) ParquetByPath(source)
        else table(statement.source, "CLONE")
      CloneTable.of(child, request)
    }

    override def visitConvert(statement: ConvertContext): LogicalPlan =
      ConvertCommand.of(
        parts(statement.source),
        Option(statement.partitioning).map(columns => spark.parseTableSchema(text(columns))),
        collectsStatistics = statement.noStatistics == null
      )

    override def visitReorganizeTable(statement: ReorganizeTableContext): LogicalPlan = {
      val table = Option(statement.table).fold("no table")(text)
      val reason =
        if (statement.PURGE != null) s"$table is not a table with an optional condition"
        else if (statement.APPLY == null) s"there is no APPLY (PURGE) after $table"
        else s"APPLY ${text(statement.applied)} is not supported for $table"
      throw DeltaicException("DELTAIC_REORG_INVALID", Map("reason" -> reason))
    }

    private def described(target: TargetContext, command: String): LogicalPlan =
      if (target.path != null) TableAtPath(unquoted(target.path))
      else TableToDescribe(parts(target.name), command)

    private def target(target: TargetContext, command: String): LogicalPlan =
      if (target.path != null) TableAtPath(unquoted(target.path)) else table(target.name, command)

    private def table(name: NameContext, command: String): LogicalPlan =
      UnresolvedTable(parts(name), command)

    private def feature(named: FeatureContext): String =
      if (named.text != null) unquoted(named.text) else parts(named.name).mkString(".")

    private def unquoted(text: Token): String =
      spark.parseExpression(text.getText).eval().toString

    private def parts(name: NameContext): Seq[String] = spark.parseMultipartIdentifier(text(name))

    private def text(context: ParserRuleContext): String =
      context.start.getInputStream.getText(
        Interval.of(context.start.getStartIndex, context.stop.getStopIndex)
      )
  }

  override def parseExpression(sqlText: String): Expression = spark.parseExpression(sqlText)
  override def parseTableIdentifier(sqlText: String): TableIdentifier =
    spark.parseTableIdentifier(sqlText)
  override def parseFunctionIdentifier(sqlText: String): FunctionIdentifier =
    spark.parseFunctionIdentifier(sqlText)
  override def parseMultipartIdentifier(sqlText: String): Seq[String] =
    spark.parseMultipartIdentifier(sqlText)
  override def parseQuery(sqlText: String): LogicalPlan =
    parsed.of(spark.parseQuery(sqlText))
  override def parseRoutineParam(sqlText: String): StructType = spark.parseRoutineParam(sqlText)
  override def parseTableSchema(sqlText: String): StructType = spark.parseTableSchema(sqlText)
  override def parseDataType(sqlText: String): DataType = spark.parseDataType(sqlText)
}

private[spark] object StatementParser {

  /** A statement that Spark would parse as another. */
  private val Statement = "DESCRIBE HISTORY probe"

  /** A query to which our parser adds a marker. */
  private val Query = "SELECT * FROM probe WITH ('readChangeFeed' = 'true')"

  /** Whether a session's parser delegates to ours in all methods that Spark calls: `spark.sql` calls the second. */
  def isBehind(parser: ParserInterface): Boolean =
    isOurs(parser.parsePlan(Statement)) &&
    isOurs(parser.parsePlanWithParameters(Statement, NamedParameterContext(Map.empty))) &&
    parser.parseQuery(Query).exists(_.isInstanceOf[TableChanges])

  private def isOurs(plan: LogicalPlan): Boolean = plan.isInstanceOf[DescribeCommand]
}
