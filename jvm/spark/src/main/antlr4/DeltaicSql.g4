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
    ;

/** A path as a text, or a name, whose parts Spark's parser reads. */
target
    : path=STRING
    | name
    ;

name: part ('.' part)*;

part
    : WORD
    | INTEGER
    | QUOTED
    | DESCRIBE | DESC | DETAIL | HISTORY | LIMIT
    ;

DESC: 'DESC';
DESCRIBE: 'DESCRIBE';
DETAIL: 'DETAIL';
HISTORY: 'HISTORY';
LIMIT: 'LIMIT';

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
