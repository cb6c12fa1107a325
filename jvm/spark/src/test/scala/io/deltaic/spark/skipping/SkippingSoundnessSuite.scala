package io.deltaic.spark.skipping

import scala.util.Try

import munit.ScalaCheckSuite
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.scalacheck.Prop.forAllNoShrink
import org.scalacheck.{Gen, Prop, Test => Check}

import io.deltaic.PatientSuite

/**
 * The soundness rule against brute force: Catalyst's own evaluation of the predicate on each row.
 */
class SkippingSoundnessSuite extends ScalaCheckSuite with PatientSuite {
  import StatsTable._

  override protected def scalaCheckTestParameters: Check.Parameters =
    super.scalaCheckTestParameters.withMinSuccessfulTests(count(2000))

  /** `make test-thorough` runs all cases. */
  private def count(all: Int): Int = if (sys.env.contains("DELTAIC_THOROUGH")) all else all / 3

  private val files: Gen[Seq[RandomFile]] =
    Gen.choose(1, 6).flatMap(Gen.listOfN(_, RandomFiles.file))

  /** A row on which the predicate fails satisfies nothing. */
  private def matches(predicate: Expression)(row: InternalRow): Boolean =
    Try(predicate.eval(row) == true).getOrElse(false)

  private def explain(predicate: Expression, lost: Iterable[RandomFile]): String =
    s"$predicate skips ${lost.map(f => s"${f.stats} with rows ${f.validRows}").mkString("\n")}"

  private def lost(some: Seq[RandomFile], predicate: Expression): Prop = {
    val selected = select(columns(some.map(_.stats): _*), predicate).toSet
    val bound = BindReferences.bindReference(predicate, attributes)
    val lost = some.zipWithIndex.collect {
      case (file, i) if !selected(i) && file.validRows.exists(matches(bound)) => file
    }
    Prop(lost.isEmpty) :| explain(predicate, lost)
  }

  property("no file with a matching row is skipped") {
    forAllNoShrink(files, RandomPredicates.predicate())(lost)
  }

  RandomFiles.leafPaths.foreach { path =>
    test(s"no file with a matching row is skipped by predicates on $path") {
      val onPath = Gen.listOfN(20, RandomPredicates.onColumn(path))
      val sound = forAllNoShrink(Gen.listOfN(6, RandomFiles.file), onPath) { (some, predicates) =>
        Prop.all(predicates.map(lost(some, _)): _*)
      }
      val result = Check.check(Check.Parameters.default.withMinSuccessfulTests(count(200)), sound)
      assert(result.passed, result.toString)
    }
  }

  test("no file with a matching row is skipped by predicates on functions, and many are skipped") {
    var skipped = 0
    val onFunctions = Gen.listOfN(20, RandomPredicates.onFunction)
    val sound =
      forAllNoShrink(Gen.listOfN(6, RandomFiles.file), onFunctions) { (some, predicates) =>
        val table = columns(some.map(_.stats): _*)
        skipped += predicates.map(p => some.size - select(table, p).size).sum
        Prop.all(predicates.map(lost(some, _)): _*)
      }
    val result = Check.check(Check.Parameters.default.withMinSuccessfulTests(count(500)), sound)
    assert(result.passed, result.toString)
    assert(skipped > 12 * count(500), s"$skipped of ${count(500) * 20 * 6}")
  }

  property("fully evaluated filters are true for every row of the files they select") {
    forAllNoShrink(files, Gen.listOfN(3, RandomPredicates.predicate(1))) { (some, predicates) =>
      val evaluated = FileSelection.split(predicates, skippingSchema).fullyEvaluated
      val selected = select(columns(some.map(_.stats): _*), evaluated: _*)
      val bound = evaluated.map(BindReferences.bindReference(_, attributes))
      val wrong =
        selected.map(some).filterNot(_.validRows.forall(r => bound.forall(_.eval(r) == true)))
      Prop(wrong.isEmpty) :| explain(evaluated.reduceOption(And(_, _)).getOrElse(lit(true)), wrong)
    }
  }

  test("every row of a file that is found whole satisfies the conditions, and many are found") {
    var found = 0
    val conditions = Gen.listOfN(20, Gen.choose(0, 2).flatMap(RandomPredicates.predicate(_)))
    val sound = forAllNoShrink(Gen.listOfN(6, RandomFiles.file), conditions) { (some, all) =>
      val table = columns(some.map(_.stats): _*)
      val pairs = all.map(Seq(_)) ++ all.sliding(2)
      Prop.all(pairs.map { wanted =>
        val bound = wanted.map(BindReferences.bindReference(_, attributes))
        val whole = FileSelection.fullySelected(table, some.indices.toArray, wanted).toSeq.map(some)
        found += whole.size
        val wrong = whole.filterNot(_.validRows.forall(row => bound.forall(matches(_)(row))))
        Prop(wrong.isEmpty) :| explain(wanted.reduce(And(_, _)), wrong)
      }: _*)
    }
    val result = Check.check(Check.Parameters.default.withMinSuccessfulTests(count(200)), sound)
    assert(result.passed, result.toString)
    assert(found > 7.5 * count(200), s"$found of ${count(200) * 39 * 6}")
  }

  test("generated code and interpretation agree on every file") {
    val cases = Gen.zip(Gen.listOfN(20, RandomFiles.file), RandomPredicates.predicate())
    val agreeing = forAllNoShrink(cases) { case (some, predicate) => agree(some, predicate) }
    val result = Check.check(Check.Parameters.default.withMinSuccessfulTests(count(100)), agreeing)
    assert(result.passed, result.toString)
  }

  private def agree(some: Seq[RandomFile], predicate: Expression): Prop = {
    val table = columns(some.map(_.stats): _*)
    val skipping = SkippingPredicate.of(Seq(predicate), skippingSchema)
    def outcomes(filesToJudge: Int): Seq[Option[Boolean]] = {
      val evaluator = skipping.evaluator(filesToJudge)
      val row = table.row(skipping.fields.map(_._1), some.indices.toArray)
      some.indices.map { i =>
        row.file = i
        Try(evaluator.eval(row)).toOption
      }
    }
    Prop(outcomes(1) == outcomes(1000000)) :| predicate.toString
  }

  test("exact statistics skip at least half of what brute force skips, for simple comparisons") {
    val exact = RandomWriter(wide = false, withNaN = true, 0, Set.empty, Map.empty, 1.0)
    val cases = for {
      file <- RandomFiles.file
      path <- Gen.oneOf("byte", "int", "long", "date", "string", "dec", "nest.n")
      value <- Gen.oneOf(RandomFiles.values(col(path).dataType))
      make <- Gen.oneOf[(Expression, Expression) => Expression](
        EqualTo(_, _),
        LessThan(_, _),
        GreaterThanOrEqual(_, _)
      )
    } yield (file.validRows, make(col(path), Literal(value, col(path).dataType)))
    val evaluated = Gen.listOfN(2000, cases).sample.get.collect {
      case (rows, predicate) if rows.nonEmpty =>
        val bound = BindReferences.bindReference(predicate, attributes)
        val skipped = select(columns(FileStats(exact.describe(rows, rows.size))), predicate).isEmpty
        (rows.exists(matches(bound)), skipped)
    }
    val (matching, without) = evaluated.partition(_._1)
    assert(matching.forall(!_._2))
    assert(without.count(_._2) * 2 > without.size, s"${without.count(_._2)} of ${without.size}")
  }
}
