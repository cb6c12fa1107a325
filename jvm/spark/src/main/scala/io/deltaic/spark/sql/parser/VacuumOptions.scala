package io.deltaic.spark.sql.parser

import org.antlr.v4.runtime.ParserRuleContext

import io.deltaic.protocol.DeltaicException
import io.deltaic.spark.sql.grammar.DeltaicSqlParser.VacuumOptionContext

/** The options of a VACUUM statement, in any order, each at most once. */
private[parser] object VacuumOptions {

  /** @param text the spelling of a part of the statement */
  def of(
      options: Seq[VacuumOptionContext],
      text: ParserRuleContext => String
  ): Map[String, Any] = {
    val named = options.map { option =>
      if (option.RETAIN != null) "RETAIN" -> ("retentionHours" -> text(option.hours))
      else if (option.DRY != null) "DRY RUN" -> ("dryRun" -> true)
      else if (option.INVENTORY != null)
        "USING INVENTORY" -> ("inventory" -> inventory(option, text))
      else if (option.LITE != null) "LITE" -> ("isLite" -> true)
      else "FULL" -> ("isLite" -> false)
    }
    options.flatMap(option => Option(option.unit)).headOption.foreach { unit =>
      refuse("RETAIN", s"its number is followed by HOURS, and not by ${unit.getText}")
    }
    val names = named.map { case (name, _) => name }
    names.diff(names.distinct).headOption.foreach(refuse(_, "it is specified twice"))
    // An inventory is a listing, which LITE does without and FULL makes.
    if (names.contains("LITE"))
      Seq("FULL", "USING INVENTORY").filter(names.contains)
        .foreach(refuse(_, "it cannot be combined with LITE"))
    named.map { case (_, argument) => argument }.toMap
  }

  private def inventory(option: VacuumOptionContext, text: ParserRuleContext => String): String =
    if (option.query != null) text(option.query) else s"TABLE ${text(option.inventory)}"

  private def refuse(option: String, reason: String): Nothing = throw DeltaicException(
    "DELTAIC_VACUUM_OPTION_INVALID",
    Map("option" -> option, "reason" -> reason)
  )
}
