/* SPDX-License-Identifier: MIT
 *
 * Word tables of scripts, queries and data.
 */
#include "ui/markdown/hl_lang.h"

/* ---- Python ---- */

static const char *const python_keywords[] = {
    "and",  "as",     "assert", "async", "await",  "break",   "case",     "class", "continue",
    "def",  "del",    "elif",   "else",  "except", "finally", "for",      "from",  "global",
    "if",   "import", "in",     "is",    "lambda", "match",   "nonlocal", "not",   "or",
    "pass", "raise",  "return", "try",   "while",  "with",    "yield",
};
static const char *const python_types[] = {
    "Exception", "IndexError", "KeyError", "RuntimeError", "TypeError", "ValueError", "bool",
    "bytearray", "bytes",      "complex",  "dict",         "float",     "frozenset",  "int",
    "list",      "object",     "set",      "str",          "tuple",     "type",
};
static const char *const python_constants[] = {
    "Ellipsis", "False", "None", "NotImplemented", "True", "__name__", "cls", "self",
};

const struct cw_hl_code cw_hl_python = {
    .keywords = CW_HL_WORDS(python_keywords),
    .types = CW_HL_WORDS(python_types),
    .constants = CW_HL_WORDS(python_constants),
    .comments = {"#"},
    .strings = {{"\"\"\"", "\"\"\"", '\\', true},
                {"'''", "'''", '\\', true},
                {"\"", "\"", '\\', false},
                {"'", "'", '\\', false}},
    .flags = CW_HL_CALLS | CW_HL_DECORATORS | CW_HL_PREFIXES,
};

/* ---- Shell ---- */

static const char *const shell_keywords[] = {
    "case",     "do", "done", "elif",   "else", "esac",  "fi",    "for",
    "function", "if", "in",   "select", "then", "until", "while",
};
static const char *const shell_builtins[] = {
    "alias",    "apt",    "apt-get", "awk",     "break",  "cat",   "cd",     "chmod",   "chown",
    "continue", "cp",     "curl",    "declare", "docker", "echo",  "eval",   "exec",    "exit",
    "export",   "find",   "git",     "grep",    "kill",   "let",   "local",  "ls",      "make",
    "mkdir",    "mv",     "npm",     "pip",     "printf", "pwd",   "python", "python3", "read",
    "readonly", "return", "rm",      "sed",     "set",    "shift", "source", "ssh",     "sudo",
    "tar",      "test",   "touch",   "trap",    "umask",  "unset", "wait",   "wget",
};
static const char *const shell_constants[] = {"false", "true"};

const struct cw_hl_code cw_hl_shell = {
    .keywords = CW_HL_WORDS(shell_keywords),
    .types = CW_HL_WORDS(shell_builtins),
    .constants = CW_HL_WORDS(shell_constants),
    .types_role = MD_FUNCTION,
    .comments = {"#"},
    .strings = {{"\"", "\"", '\\', true}, {"'", "'", 0, true}, {"`", "`", '\\', true}},
    .letters = "-",
    .flags = CW_HL_VARIABLES | CW_HL_HASH_APART,
};

/* ---- SQL ---- */

static const char *const sql_keywords[] = {
    "add",       "all",         "alter",     "and",        "any",      "as",        "asc",
    "begin",     "between",     "by",        "cascade",    "case",     "check",     "column",
    "commit",    "constraint",  "create",    "cross",      "database", "default",   "delete",
    "desc",      "distinct",    "drop",      "else",       "end",      "except",    "exists",
    "explain",   "foreign",     "from",      "full",       "function", "grant",     "group",
    "having",    "if",          "in",        "index",      "inner",    "insert",    "intersect",
    "into",      "is",          "join",      "key",        "left",     "like",      "limit",
    "not",       "offset",      "on",        "or",         "order",    "outer",     "over",
    "partition", "primary",     "procedure", "references", "replace",  "returning", "revoke",
    "right",     "rollback",    "select",    "set",        "some",     "table",     "then",
    "to",        "transaction", "trigger",   "truncate",   "union",    "unique",    "update",
    "using",     "values",      "view",      "when",       "where",    "window",    "with",
};
static const char *const sql_types[] = {
    "bigint",   "blob",  "bool", "boolean",   "bytea",   "char",  "date",    "datetime", "decimal",
    "double",   "float", "int",  "integer",   "json",    "jsonb", "numeric", "real",     "serial",
    "smallint", "text",  "time", "timestamp", "tinyint", "uuid",  "varchar",
};
static const char *const sql_constants[] = {"false", "null", "true"};

const struct cw_hl_code cw_hl_sql = {
    .keywords = CW_HL_WORDS(sql_keywords),
    .types = CW_HL_WORDS(sql_types),
    .constants = CW_HL_WORDS(sql_constants),
    .comments = {"--"},
    .comment_open = "/*",
    .comment_close = "*/",
    .strings = {{"'", "'", 0, true}, {"\"", "\"", 0, false}, {"`", "`", 0, false}},
    .flags = CW_HL_FOLD | CW_HL_CALLS,
};

/* ---- JSON, with the comments some allow ---- */

static const char *const json_constants[] = {"false", "null", "true"};

const struct cw_hl_code cw_hl_json = {
    .constants = CW_HL_WORDS(json_constants),
    .comments = {"//"},
    .comment_open = "/*",
    .comment_close = "*/",
    .strings = {{"\"", "\"", '\\', false}},
    .flags = CW_HL_KEYS,
};
