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
    ;

/** A path as a text, or a name, whose parts Spark's parser reads. */
target
    : path=STRING
    | name
    ;

feature
    : text=STRING
    | name
    ;

name: part ('.' part)*;

part
    : WORD
    | INTEGER
    | QUOTED
    | DESCRIBE | DESC | DETAIL | HISTORY | LIMIT
    | ALTER | CHANGE | COLUMN | DROP | FEATURE | IDENTITY | SYNC | TABLE | TRUNCATE
    ;

ALTER: 'ALTER';
CHANGE: 'CHANGE';
COLUMN: 'COLUMN';
DESC: 'DESC';
DESCRIBE: 'DESCRIBE';
DETAIL: 'DETAIL';
DROP: 'DROP';
FEATURE: 'FEATURE';
HISTORY: 'HISTORY';
IDENTITY: 'IDENTITY';
LIMIT: 'LIMIT';
SYNC: 'SYNC';
TABLE: 'TABLE';
TRUNCATE: 'TRUNCATE';

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
