package io.deltaic.protocol

import com.fasterxml.jackson.core.JsonToken._
import com.fasterxml.jackson.core.{JsonParseException, JsonParser, JsonToken}
import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.ObjectNode

/**
 * Reads actions from a stream of JSON objects, token by token: the cost of opening a table is the cost of parsing its
 * log, and a tree per action would double it. Unknown actions and fields are skipped (Protocol § Protocol Evolution).
 */
private[deltaic] final class ActionParser(parser: JsonParser, wanted: ActionsWanted) {

  private val forReplay = wanted == ActionsWanted.ForReplay

  /** Whether another object follows. */
  def hasNext: Boolean = parser.nextToken() != null

  /** The action in the next object, null if it has no known action. */
  def next(): Action = {
    if (!parser.hasCurrentToken) parser.nextToken()
    if (parser.currentToken != START_OBJECT) fail("an action must be a JSON object")
    var action: Action = null
    fields { name =>
      val read = if (parser.currentToken == VALUE_NULL) null else readAction(name)
      if (read != null) action = read
    }
    action
  }

  private def readAction(name: String): Action = name match {
    case "add" => readAdd()
    case "remove" => readRemove()
    case "metaData" => readMetadata()
    case "protocol" => readProtocol()
    case "txn" => readTransaction()
    case "domainMetadata" => readDomain()
    case "cdc" if !forReplay => readCdc()
    case "commitInfo" if !forReplay => readCommitInfo()
    case "checkpointMetadata" =>
      var version = Option.empty[Long]
      var tags = Map.empty[String, String]
      members(name) {
        case "version" => version = Some(long())
        case "tags" => tags = stringMap()
        case _ => skip()
      }
      CheckpointMetadata(required(version, name, "version"), tags)
    case "sidecar" => readSidecar()
    case _ =>
      skip()
      null
  }

  /** Any JSON is allowed (Protocol § Commit Provenance Information); only the fields of an object are used. */
  private def readCommitInfo(): CommitInfo =
    ActionJson.mapper.readTree[JsonNode](parser) match {
      case members: ObjectNode => CommitInfo(members)
      case _ => CommitInfo(ActionJson.mapper.createObjectNode())
    }

  private def readAdd(): AddFile = {
    var path, stats, clusteringProvider: String = null
    var partitionValues, tags = Map.empty[String, String]
    var size, baseRowId, defaultRowCommitVersion = Option.empty[Long]
    var modificationTime = 0L
    var dataChange = true
    var dv = Option.empty[DeletionVectorDescriptor]
    members("add") {
      case "path" => path = string()
      case "partitionValues" => partitionValues = stringMap()
      case "size" => size = Some(long())
      case "modificationTime" => modificationTime = long()
      case "dataChange" => dataChange = boolean()
      case "stats" => stats = jsonString()
      case "tags" => tags = stringMap()
      case "deletionVector" => dv = Some(readDeletionVector())
      case "baseRowId" => baseRowId = Some(long())
      case "defaultRowCommitVersion" => defaultRowCommitVersion = Some(long())
      case "clusteringProvider" => clusteringProvider = string()
      case _ => skip()
    }
    AddFile(
      required(Option(path), "add", "path"),
      partitionValues,
      required(size, "add", "size"),
      modificationTime,
      dataChange,
      Option(stats),
      tags,
      dv,
      baseRowId,
      defaultRowCommitVersion,
      Option(clusteringProvider)
    )
  }

  private def readRemove(): RemoveFile = {
    var path, stats: String = null
    var partitionValues, tags = Map.empty[String, String]
    var deletionTimestamp, size, baseRowId, defaultRowCommitVersion = Option.empty[Long]
    var dataChange = true
    var extended = Option.empty[Boolean]
    var dv = Option.empty[DeletionVectorDescriptor]
    members("remove") {
      case "path" => path = string()
      case "deletionTimestamp" => deletionTimestamp = Some(long())
      case "dataChange" => dataChange = boolean()
      case "extendedFileMetadata" => extended = Some(boolean())
      case "partitionValues" => partitionValues = stringMap()
      case "size" => size = Some(long())
      case "stats" if !forReplay => stats = jsonString()
      case "tags" if !forReplay => tags = stringMap()
      case "deletionVector" => dv = Some(readDeletionVector())
      case "baseRowId" => baseRowId = Some(long())
      case "defaultRowCommitVersion" => defaultRowCommitVersion = Some(long())
      case _ => skip()
    }
    RemoveFile(
      required(Option(path), "remove", "path"),
      deletionTimestamp,
      dataChange,
      extended,
      partitionValues,
      size,
      Option(stats),
      tags,
      dv,
      baseRowId,
      defaultRowCommitVersion
    )
  }

  private def readDeletionVector(): DeletionVectorDescriptor = {
    var storageType, pathOrInline: String = null
    var offset, size = Option.empty[Int]
    var cardinality = Option.empty[Long]
    members("deletionVector") {
      case "storageType" => storageType = string()
      case "pathOrInlineDv" => pathOrInline = string()
      case "offset" => offset = Some(int())
      case "sizeInBytes" => size = Some(int())
      case "cardinality" => cardinality = Some(long())
      case _ => skip()
    }
    DeletionVectorDescriptor(
      required(Option(storageType), "deletionVector", "storageType"),
      required(Option(pathOrInline), "deletionVector", "pathOrInlineDv"),
      offset,
      required(size, "deletionVector", "sizeInBytes"),
      required(cardinality, "deletionVector", "cardinality")
    )
  }

  /** A table without columns may lack a schema, which is then the empty struct. */
  private def readMetadata(): Metadata = {
    var id, name, description, schema: String = null
    var format = Format()
    var partitionColumns = Seq.empty[String]
    var createdTime = Option.empty[Long]
    var configuration = Map.empty[String, String]
    members("metaData") {
      case "id" => id = string()
      case "name" => name = string()
      case "description" => description = string()
      case "format" => format = readFormat()
      case "schemaString" => schema = string()
      case "partitionColumns" => partitionColumns = strings()
      case "createdTime" => createdTime = Some(long())
      // A property that is null is treated as absent.
      case "configuration" => configuration = stringMap().filter(_._2 != null)
      case _ => skip()
    }
    Metadata(
      required(Option(id), "metaData", "id"),
      Option(name),
      Option(description),
      format,
      if (schema == null) Metadata.EmptySchema else schema,
      partitionColumns,
      createdTime,
      configuration
    )
  }

  private def readFormat(): Format = {
    var provider = "parquet"
    var options = Map.empty[String, String]
    members("format") {
      case "provider" => provider = string()
      case "options" => options = stringMap()
      case _ => skip()
    }
    Format(provider, options)
  }

  private def readProtocol(): Protocol = {
    var reader, writer = Option.empty[Int]
    var readerFeatures, writerFeatures = Option.empty[Set[String]]
    members("protocol") {
      case "minReaderVersion" => reader = Some(int())
      case "minWriterVersion" => writer = Some(int())
      case "readerFeatures" => readerFeatures = Some(strings().toSet)
      case "writerFeatures" => writerFeatures = Some(strings().toSet)
      case _ => skip()
    }
    Protocol(
      required(reader, "protocol", "minReaderVersion"),
      required(writer, "protocol", "minWriterVersion"),
      readerFeatures,
      writerFeatures
    )
  }

  private def readTransaction(): SetTransaction = {
    var appId: String = null
    var version, lastUpdated = Option.empty[Long]
    members("txn") {
      case "appId" => appId = string()
      case "version" => version = Some(long())
      case "lastUpdated" => lastUpdated = Some(long())
      case _ => skip()
    }
    SetTransaction(
      required(Option(appId), "txn", "appId"),
      required(version, "txn", "version"),
      lastUpdated
    )
  }

  private def readDomain(): DomainMetadata = {
    var domain: String = null
    var configuration = ""
    var removed = false
    members("domainMetadata") {
      case "domain" => domain = string()
      case "configuration" => configuration = jsonString()
      case "removed" => removed = boolean()
      case _ => skip()
    }
    DomainMetadata(required(Option(domain), "domainMetadata", "domain"), configuration, removed)
  }

  private def readCdc(): AddCdcFile = {
    var path: String = null
    var partitionValues, tags = Map.empty[String, String]
    var size = 0L
    members("cdc") {
      case "path" => path = string()
      case "partitionValues" => partitionValues = stringMap()
      case "size" => size = long()
      case "tags" => tags = stringMap()
      case _ => skip()
    }
    AddCdcFile(required(Option(path), "cdc", "path"), partitionValues, size, tags)
  }

  private def readSidecar(): Sidecar = {
    var path: String = null
    var size, modificationTime = 0L
    var tags = Map.empty[String, String]
    members("sidecar") {
      case "path" => path = string()
      case "sizeInBytes" => size = long()
      case "modificationTime" => modificationTime = long()
      case "tags" => tags = stringMap()
      case _ => skip()
    }
    Sidecar(required(Option(path), "sidecar", "path"), size, modificationTime, tags)
  }

  /** Visits the fields of the object at the current token; a null field is treated as absent. */
  private def members(of: String)(read: String => Unit): Unit = {
    expectObject(of)
    fields(name => if (parser.currentToken != VALUE_NULL) read(name))
  }

  private def fields(read: String => Unit): Unit =
    while (parser.nextToken() == FIELD_NAME) {
      val name = parser.currentName
      parser.nextToken()
      read(name)
    }

  private def expectObject(what: String): Unit =
    if (parser.currentToken != START_OBJECT) fail(s"$what must be a JSON object")

  private def skip(): Unit = {
    parser.skipChildren()
    ()
  }

  private def string(): String =
    if (parser.currentToken.isScalarValue) parser.getText
    else fail(s"${parser.currentName} must be a string")

  /** A field that contains JSON as a string; an object in its place is converted to that JSON. */
  private def jsonString(): String =
    if (parser.currentToken == START_OBJECT) ActionJson.mapper.readTree[ObjectNode](parser).toString
    else string()

  private def boolean(): Boolean = parser.currentToken match {
    case VALUE_TRUE => true
    case VALUE_FALSE => false
    case _ => fail(s"${parser.currentName} must be true or false")
  }

  private def long(): Long =
    try
      parser.currentToken match {
        case VALUE_NUMBER_INT => parser.getLongValue
        case VALUE_NUMBER_FLOAT => parser.getDecimalValue.longValueExact
        case VALUE_STRING => parser.getText.toLong
        case _ => fail(s"${parser.currentName} must be a number")
      }
    catch {
      case _: ArithmeticException | _: NumberFormatException =>
        fail(s"${parser.currentName} must be a whole number")
    }

  private def int(): Int = {
    val value = long()
    if (value.isValidInt) value.toInt else fail(s"${parser.currentName} is out of range")
  }

  private def stringMap(): Map[String, String] = {
    expectObject(parser.currentName)
    var values = Map.empty[String, String]
    fields { name =>
      val value = parser.currentToken match {
        case VALUE_NULL => null
        case START_OBJECT | START_ARRAY => ActionJson.mapper.readTree(parser).toString
        case _ => parser.getText
      }
      values = values.updated(name, value)
    }
    values
  }

  private def strings(): Seq[String] = {
    if (parser.currentToken != START_ARRAY) fail(s"${parser.currentName} must be an array")
    val values = Vector.newBuilder[String]
    var token: JsonToken = parser.nextToken()
    while (token != END_ARRAY) {
      values += string()
      token = parser.nextToken()
    }
    values.result()
  }

  private def required[A](value: Option[A], action: String, field: String): A =
    value.getOrElse(fail(s"$action lacks the required field $field"))

  private def fail(reason: String): Nothing = throw new JsonParseException(parser, reason)
}

/** Which actions and fields to read. */
private[deltaic] sealed trait ActionsWanted

private[deltaic] object ActionsWanted {

  case object All extends ActionsWanted

  /** No commitInfo, no cdc, and only the fields of a `remove` that checkpoints contain. */
  case object ForReplay extends ActionsWanted
}
