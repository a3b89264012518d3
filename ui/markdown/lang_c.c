/* SPDX-License-Identifier: MIT
 *
 * Word tables of the languages that descend from C.
 */
#include "ui/markdown/hl_lang.h"

#define C_STRINGS                                                                                  \
    {                                                                                              \
        {"\"", "\"", '\\', false}, {                                                               \
            "'", "'", '\\', false                                                                  \
        }                                                                                          \
    }

/* ---- C ---- */

static const char *const c_keywords[] = {
    "_Alignas", "_Alignof", "_Atomic",  "_Generic", "_Noreturn",    "_Static_assert",
    "asm",      "auto",     "break",    "case",     "const",        "continue",
    "default",  "do",       "else",     "enum",     "extern",       "for",
    "goto",     "if",       "inline",   "register", "restrict",     "return",
    "sizeof",   "static",   "struct",   "switch",   "thread_local", "typedef",
    "typeof",   "union",    "volatile", "while",
};
static const char *const c_types[] = {
    "FILE",    "_Bool",     "bool",     "char",     "double", "float",    "int",      "int16_t",
    "int32_t", "int64_t",   "int8_t",   "intptr_t", "long",   "off_t",    "pid_t",    "ptrdiff_t",
    "short",   "signed",    "size_t",   "ssize_t",  "time_t", "uint16_t", "uint32_t", "uint64_t",
    "uint8_t", "uintptr_t", "unsigned", "va_list",  "void",   "wchar_t",
};
static const char *const c_constants[] = {
    "EOF", "NULL", "errno", "false", "nullptr", "stderr", "stdin", "stdout", "true",
};

const struct cw_hl_code cw_hl_c = {
    .keywords = CW_HL_WORDS(c_keywords),
    .types = CW_HL_WORDS(c_types),
    .constants = CW_HL_WORDS(c_constants),
    .comments = {"//"},
    .comment_open = "/*",
    .comment_close = "*/",
    .strings = C_STRINGS,
    .flags = CW_HL_CALLS | CW_HL_DIRECTIVES | CW_HL_PREFIXES,
};

/* ---- C++ ---- */

static const char *const cpp_keywords[] = {
    "alignas",
    "alignof",
    "asm",
    "auto",
    "break",
    "case",
    "catch",
    "class",
    "co_await",
    "co_return",
    "co_yield",
    "concept",
    "const",
    "const_cast",
    "consteval",
    "constexpr",
    "constinit",
    "continue",
    "decltype",
    "default",
    "delete",
    "do",
    "dynamic_cast",
    "else",
    "enum",
    "explicit",
    "export",
    "extern",
    "final",
    "for",
    "friend",
    "goto",
    "if",
    "import",
    "inline",
    "module",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "operator",
    "override",
    "private",
    "protected",
    "public",
    "register",
    "reinterpret_cast",
    "requires",
    "return",
    "sizeof",
    "static",
    "static_assert",
    "static_cast",
    "struct",
    "switch",
    "template",
    "this",
    "thread_local",
    "throw",
    "try",
    "typedef",
    "typeid",
    "typename",
    "union",
    "using",
    "virtual",
    "volatile",
    "while",
};
static const char *const cpp_types[] = {
    "array",       "bool",          "char",          "char16_t", "char32_t", "char8_t",
    "double",      "float",         "int",           "int16_t",  "int32_t",  "int64_t",
    "int8_t",      "long",          "map",           "optional", "pair",     "ptrdiff_t",
    "set",         "shared_ptr",    "short",         "signed",   "size_t",   "string",
    "string_view", "tuple",         "uint16_t",      "uint32_t", "uint64_t", "uint8_t",
    "unique_ptr",  "unordered_map", "unordered_set", "unsigned", "variant",  "vector",
    "void",        "wchar_t",       "weak_ptr",
};
static const char *const cpp_constants[] = {
    "NULL", "cerr", "cin", "clog", "cout", "endl", "false", "nullptr", "std", "true",
};

const struct cw_hl_code cw_hl_cpp = {
    .keywords = CW_HL_WORDS(cpp_keywords),
    .types = CW_HL_WORDS(cpp_types),
    .constants = CW_HL_WORDS(cpp_constants),
    .comments = {"//"},
    .comment_open = "/*",
    .comment_close = "*/",
    .strings = C_STRINGS,
    .flags = CW_HL_CALLS | CW_HL_DIRECTIVES | CW_HL_PREFIXES,
};

/* ---- Java ---- */

static const char *const java_keywords[] = {
    "abstract",  "assert",       "break",  "case",    "catch",      "class",     "const",
    "continue",  "default",      "do",     "else",    "enum",       "extends",   "final",
    "finally",   "for",          "goto",   "if",      "implements", "import",    "instanceof",
    "interface", "native",       "new",    "package", "permits",    "private",   "protected",
    "public",    "record",       "return", "sealed",  "static",     "strictfp",  "super",
    "switch",    "synchronized", "this",   "throw",   "throws",     "transient", "try",
    "var",       "volatile",     "while",  "yield",
};
static const char *const java_types[] = {
    "ArrayList", "Boolean",       "Character", "Collection", "Double",  "Exception", "Float",
    "HashMap",   "HashSet",       "Integer",   "Iterable",   "List",    "Long",      "Map",
    "Object",    "Optional",      "Override",  "Runnable",   "Set",     "Short",     "Stream",
    "String",    "StringBuilder", "System",    "Thread",     "boolean", "byte",      "char",
    "double",    "float",         "int",       "long",       "short",   "void",
};
static const char *const java_constants[] = {"false", "null", "true"};

const struct cw_hl_code cw_hl_java = {
    .keywords = CW_HL_WORDS(java_keywords),
    .types = CW_HL_WORDS(java_types),
    .constants = CW_HL_WORDS(java_constants),
    .comments = {"//"},
    .comment_open = "/*",
    .comment_close = "*/",
    .strings = {{"\"\"\"", "\"\"\"", '\\', true},
                {"\"", "\"", '\\', false},
                {"'", "'", '\\', false}},
    .letters = "$",
    .flags = CW_HL_CALLS | CW_HL_DECORATORS,
};

/* ---- Go ---- */

static const char *const go_keywords[] = {
    "break",  "case",        "chan", "const",   "continue", "default", "defer",
    "else",   "fallthrough", "for",  "func",    "go",       "goto",    "if",
    "import", "interface",   "map",  "package", "range",    "return",  "select",
    "struct", "switch",      "type", "var",
};
static const char *const go_types[] = {
    "any",     "bool",   "byte",   "comparable", "complex128", "complex64", "error", "float32",
    "float64", "int",    "int16",  "int32",      "int64",      "int8",      "rune",  "string",
    "uint",    "uint16", "uint32", "uint64",     "uint8",      "uintptr",
};
static const char *const go_constants[] = {"false", "iota", "nil", "true"};

const struct cw_hl_code cw_hl_go = {
    .keywords = CW_HL_WORDS(go_keywords),
    .types = CW_HL_WORDS(go_types),
    .constants = CW_HL_WORDS(go_constants),
    .comments = {"//"},
    .comment_open = "/*",
    .comment_close = "*/",
    .strings = {{"`", "`", 0, true}, {"\"", "\"", '\\', false}, {"'", "'", '\\', false}},
    .flags = CW_HL_CALLS,
};

/* ---- Rust ---- */

static const char *const rust_keywords[] = {
    "Self",  "as",     "async", "await",  "break",  "const", "continue", "crate",
    "dyn",   "else",   "enum",  "extern", "fn",     "for",   "if",       "impl",
    "in",    "let",    "loop",  "match",  "mod",    "move",  "mut",      "pub",
    "ref",   "return", "self",  "static", "struct", "super", "trait",    "type",
    "union", "unsafe", "use",   "where",  "while",  "yield",
};
static const char *const rust_types[] = {
    "Arc", "Box",   "HashMap", "HashSet", "Option", "Rc",   "RefCell", "Result", "String",
    "Vec", "bool",  "char",    "f32",     "f64",    "i128", "i16",     "i32",    "i64",
    "i8",  "isize", "str",     "u128",    "u16",    "u32",  "u64",     "u8",     "usize",
};
static const char *const rust_constants[] = {"Err", "None", "Ok", "Some", "false", "true"};

const struct cw_hl_code cw_hl_rust = {
    .keywords = CW_HL_WORDS(rust_keywords),
    .types = CW_HL_WORDS(rust_types),
    .constants = CW_HL_WORDS(rust_constants),
    .comments = {"//"},
    .comment_open = "/*",
    .comment_close = "*/",
    .comments_nest = true,
    .strings = {{"\"", "\"", '\\', true}, {"'", "'", '\\', false}},
    .flags = CW_HL_CALLS | CW_HL_RUST | CW_HL_PREFIXES,
};

/* ---- JavaScript and TypeScript ---- */

static const char *const js_keywords[] = {
    "as",     "async",    "await",    "break",      "case",   "catch",    "class",
    "const",  "continue", "debugger", "default",    "delete", "do",       "else",
    "export", "extends",  "finally",  "for",        "from",   "function", "get",
    "if",     "import",   "in",       "instanceof", "let",    "new",      "of",
    "return", "set",      "static",   "super",      "switch", "this",     "throw",
    "try",    "typeof",   "var",      "void",       "while",  "with",     "yield",
};
static const char *const ts_keywords[] = {
    "abstract",  "as",         "async",     "await",     "break",      "case",     "catch",
    "class",     "const",      "continue",  "debugger",  "declare",    "default",  "delete",
    "do",        "else",       "enum",      "export",    "extends",    "finally",  "for",
    "from",      "function",   "get",       "if",        "implements", "import",   "in",
    "infer",     "instanceof", "interface", "is",        "keyof",      "let",      "namespace",
    "new",       "of",         "private",   "protected", "public",     "readonly", "return",
    "satisfies", "set",        "static",    "super",     "switch",     "this",     "throw",
    "try",       "type",       "typeof",    "var",       "void",       "while",    "with",
    "yield",
};
static const char *const js_types[] = {
    "Array",   "Boolean", "Date",     "Error",   "JSON",   "Map",    "Math",
    "Number",  "Object",  "Promise",  "RegExp",  "Set",    "String", "Symbol",
    "WeakMap", "console", "document", "process", "window",
};
static const char *const ts_types[] = {
    "Array",   "Boolean", "Date",    "Error",  "JSON",   "Map",    "Math",   "Number", "Object",
    "Partial", "Pick",    "Promise", "Record", "RegExp", "Set",    "String", "Symbol", "any",
    "bigint",  "boolean", "console", "never",  "number", "object", "string", "symbol", "unknown",
};
static const char *const js_constants[] = {"Infinity", "NaN", "false", "null", "true", "undefined"};

#define JS_STRINGS                                                                                 \
    {                                                                                              \
        {"`", "`", '\\', true}, {"\"", "\"", '\\', false}, {                                       \
            "'", "'", '\\', false                                                                  \
        }                                                                                          \
    }

const struct cw_hl_code cw_hl_js = {
    .keywords = CW_HL_WORDS(js_keywords),
    .types = CW_HL_WORDS(js_types),
    .constants = CW_HL_WORDS(js_constants),
    .comments = {"//"},
    .comment_open = "/*",
    .comment_close = "*/",
    .strings = JS_STRINGS,
    .letters = "$",
    .flags = CW_HL_CALLS | CW_HL_DECORATORS,
};

const struct cw_hl_code cw_hl_ts = {
    .keywords = CW_HL_WORDS(ts_keywords),
    .types = CW_HL_WORDS(ts_types),
    .constants = CW_HL_WORDS(js_constants),
    .comments = {"//"},
    .comment_open = "/*",
    .comment_close = "*/",
    .strings = JS_STRINGS,
    .letters = "$",
    .flags = CW_HL_CALLS | CW_HL_DECORATORS,
};
