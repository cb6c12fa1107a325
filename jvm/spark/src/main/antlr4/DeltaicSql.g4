/**
 * Statements on Delta tables that Spark's own grammar lacks. It is tried first; what it does not match from the
 * first word to the last goes to Spark's parser.
 */
grammar DeltaicSql;

options { caseInsensitive = true; }

singleStatement: statement ';'* EOF;

statement
    : (DESCRIBE | DESC) HISTORY target (LIMIT limit=INTEGER)?  # describeHistory
    | (DESCRIBE | DESC) DETAIL target                          # describeDetail
    | ALTER TABLE table=name (ALTER | CHANGE) COLUMN? column=name SYNC IDENTITY  # syncIdentity
    | ALTER TABLE table=name DROP FEATURE feature (TRUNCATE HISTORY)?            # dropFeature
    | OPTIMIZE target FULL? (WHERE predicate)? (ZORDER BY columns)?              # optimizeTable
    | REORG TABLE? target (WHERE predicate)? APPLY '(' PURGE ')'                 # purgeTable
    | REORG TABLE? target APPLY '(' UPGRADE UNIFORM '(' ICEBERG_COMPAT_VERSION '=' version=INTEGER ')' ')'  # upgradeUniform
    | REORG table=rest? APPLY '(' PURGE ')'                    # reorganizeTable
    | REORG table=rest? APPLY applied=rest                     # reorganizeTable
    | REORG table=rest                                         # reorganizeTable
    | RESTORE TABLE? table=name TO? FOR? asOf                  # restore
    | GENERATE manifest=name FOR TABLE table=name                  # generate
    | VACUUM target vacuumOption*                              # vacuum
    | definition=cloneHeader (SHALLOW | DEEP)? CLONE source=name (FOR? asOf)? clauses=rest?  # cloneTable
    | CONVERT TO DELTA source=name noStatistics? (PARTITIONED BY '(' partitioning=query ')')?  # convert
    ;

/** The table that becomes a clone. */
cloneHeader
    : CREATE TABLE (IF NOT EXISTS)? name
    | (CREATE OR)? REPLACE TABLE name
    ;

noStatistics: NO STATISTICS;

vacuumOption
    : LITE
    | FULL
    | USING INVENTORY (inventory=name | '(' query ')')
    | RETAIN hours (HOURS | unit=WORD)
    | DRY RUN
    ;

/** A query, which Spark's parser reads. */
query: (~('(' | ')') | '(' query? ')')+;

hours: '-'? INTEGER ('.' INTEGER)?;

rest: ~';'+;

/** A condition, which Spark's parser reads. */
predicate: ~(';' | ZORDER)+;
asOf
    : (VERSION | SYSTEM_VERSION) AS OF version=(INTEGER | STRING)
    | (TIMESTAMP | SYSTEM_TIME) AS OF timestamp=STRING
    ;

/** A path as a string, or a name, whose parts Spark's parser reads. */
target
    : path=STRING
    | name
    ;

feature
    : text=STRING
    | name
    ;

columns
    : '(' zOrderBy+=name (',' zOrderBy+=name)* ')'
    | zOrderBy+=name (',' zOrderBy+=name)*
    ;

name: part ('.' part)*;

part
    : WORD
    | INTEGER
    | QUOTED
    | DESCRIBE | DESC | DETAIL | HISTORY | LIMIT
    | ALTER | CHANGE | COLUMN | DROP | FEATURE | IDENTITY | SYNC | TABLE | TRUNCATE
    | CLONE | CONVERT | CREATE | DEEP | DELTA | EXISTS | GENERATE | IF | NOT | OPTIMIZE | OR
    | REORG | REPLACE | RESTORE | SHALLOW | TO | VACUUM
    | APPLY | BY | FULL | PURGE | UPGRADE | WHERE | ZORDER
    | AS | FOR | OF | SYSTEM_TIME | SYSTEM_VERSION | TIMESTAMP | VERSION
    | DRY | HOURS | INVENTORY | LITE | RETAIN | RUN | USING
    | NO | PARTITIONED | STATISTICS
    | ICEBERG_COMPAT_VERSION | UNIFORM
    ;

ALTER: 'ALTER';
APPLY: 'APPLY';
AS: 'AS';
BY: 'BY';
CHANGE: 'CHANGE';
CLONE: 'CLONE';
COLUMN: 'COLUMN';
CONVERT: 'CONVERT';
CREATE: 'CREATE';
DEEP: 'DEEP';
DELTA: 'DELTA';
DESC: 'DESC';
DESCRIBE: 'DESCRIBE';
DETAIL: 'DETAIL';
DROP: 'DROP';
DRY: 'DRY';
EXISTS: 'EXISTS';
FEATURE: 'FEATURE';
FOR: 'FOR';
FULL: 'FULL';
GENERATE: 'GENERATE';
HISTORY: 'HISTORY';
HOURS: 'HOURS';
ICEBERG_COMPAT_VERSION: 'ICEBERG_COMPAT_VERSION';
IDENTITY: 'IDENTITY';
IF: 'IF';
INVENTORY: 'INVENTORY';
LIMIT: 'LIMIT';
LITE: 'LITE';
NO: 'NO';
NOT: 'NOT';
OF: 'OF';
OPTIMIZE: 'OPTIMIZE';
OR: 'OR';
PARTITIONED: 'PARTITIONED';
PURGE: 'PURGE';
REORG: 'REORG';
REPLACE: 'REPLACE';
RESTORE: 'RESTORE';
RETAIN: 'RETAIN';
RUN: 'RUN';
SHALLOW: 'SHALLOW';
STATISTICS: 'STATISTICS';
SYNC: 'SYNC';
SYSTEM_TIME: 'SYSTEM_TIME';
SYSTEM_VERSION: 'SYSTEM_VERSION';
TABLE: 'TABLE';
TIMESTAMP: 'TIMESTAMP';
TO: 'TO';
TRUNCATE: 'TRUNCATE';
UNIFORM: 'UNIFORM';
UPGRADE: 'UPGRADE';
USING: 'USING';
VACUUM: 'VACUUM';
VERSION: 'VERSION';
WHERE: 'WHERE';
ZORDER: 'ZORDER';

STRING
    : '\'' (~['\\] | '\\' . | '\'\'')* '\''
    | '"' (~["\\] | '\\' . | '""')* '"'
    ;

INTEGER: [0-9]+;
WORD: [\p{L}\p{N}_]+;
QUOTED: '`' (~'`' | '``')* '`';

LINE_COMMENT: '--' ~[\r\n]* -> channel(HIDDEN);
BLOCK_COMMENT: '/*' (BLOCK_COMMENT | .)*? '*/' -> channel(HIDDEN);
SPACE: [ \t\r\n\u00A0]+ -> channel(HIDDEN);

/** Whatever else there is belongs to no statement of ours. */
OTHER: .;
