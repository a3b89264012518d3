/* SPDX-License-Identifier: MIT
 *
 * Colouring: for each language lines of its own and where the roles stand in them, <k:...> and so
 * on.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "chinwag/mem.h"
#include "ui/markdown/highlight.h"
#include "ui/markdown/hl_lang.h"

static const char *const names[MD_N_ROLES] = {
    [MD_KEYWORD] = "k",    [MD_TYPE] = "t",         [MD_CONSTANT] = "o", [MD_STRING] = "s",
    [MD_NUMBER] = "n",     [MD_COMMENT] = "c",      [MD_FUNCTION] = "f", [MD_VARIABLE] = "v",
    [MD_PREPROC] = "p",    [MD_KEY] = "y",          [MD_TAG] = "g",      [MD_DIFF_ADD] = "add",
    [MD_DIFF_DEL] = "del", [MD_DIFF_HUNK] = "hunk",
};

/* clang-format off */
static const struct {
    const char *language, *source, *marked;
} cases[] = {
    {"c",
     "#include <stdio.h>\n"
     "#  define X(a) \"s\" // c\n"
     "static const char *f(int x) { return x ? \"a\\\"b\" : 'c'; } /* d\n"
     "more */ if (0x1Fu + 1.5e-3f + 10'000 - .5) NULL; u8\"x\" Foo(a);\n"
     "\"unterminated\n"
     "int y;\n",
     "<p:#include> <s:<stdio.h>>\n"
     "<p:#  define> <f:X>(a) <s:\"s\"> <c:// c>\n"
     "<k:static> <k:const> <t:char> *<f:f>(<t:int> x) { <k:return> x ? <s:\"a\\\"b\"> : <s:'c'>; } <c:/* d>\n"
     "<c:more */> <k:if> (<n:0x1Fu> + <n:1.5e-3f> + <n:10'000> - <n:.5>) <o:NULL>; <s:u8\"x\"> <f:Foo>(a);\n"
     "<s:\"unterminated>\n"
     "<t:int> y;\n"},
    {"C++",
     "template <typename T> class X : public Y { std::vector<int> v; auto f() -> void override; };\n",
     "<k:template> <<k:typename> T> <k:class> X : <k:public> Y { <o:std>::<t:vector><<t:int>> v; <k:auto> <f:f>() -> <t:void> <k:override>; };\n"},
    {"python",
     "@dec.orator(1)\n"
     "def f(self, x: int = 0b1) -> str:  # c\n"
     "    return f\"a{x}\" + r'\\n' + b\"z\" + \"\"\"doc\n"
     "still \\\"\"\" ''' here\n"
     "end\"\"\" + None if x else print(1_000j)\n",
     "<p:@dec.orator>(<n:1>)\n"
     "<k:def> <f:f>(<o:self>, x: <t:int> = <n:0b1>) -> <t:str>:  <c:# c>\n"
     "    <k:return> <s:f\"a{x}\"> + <s:r'\\n'> + <s:b\"z\"> + <s:\"\"\"doc>\n"
     "<s:still \\\"\"\" ''' here>\n"
     "<s:end\"\"\"> + <o:None> <k:if> x <k:else> <f:print>(<n:1_000j>)\n"},
    {"rs",
     "#[derive(Debug)] #![x]\n"
     "fn f<'a>(x: &'a str) -> Vec<u8> { let c = 'x'; println!(\"{}\", r#\"a\"b\"#); a != b; /* /* n */\n"
     "still */ Some(1..10) }\n"
     "let s = \"multi\n"
     "line\"; br##\"x\"# y\n"
     "\"## z\n",
     "<p:#[derive(Debug)]> <p:#![x]>\n"
     "<k:fn> f<<v:'a>>(x: &<v:'a> <t:str>) -> <t:Vec><<t:u8>> { <k:let> c = <s:'x'>; <f:println!>(<s:\"{}\">, <s:r#\"a\"b\"#>); a != b; <c:/* /* n */>\n"
     "<c:still */> <o:Some>(<n:1>..<n:10>) }\n"
     "<k:let> s = <s:\"multi>\n"
     "<s:line\">; <s:br##\"x\"# y>\n"
     "<s:\"##> z\n"},
    {"go",
     "func main() { x := `raw\\\n"
     "more` + \"s\\\"\" // c\n"
     "\tvar y int64 = 'a' }\n",
     "<k:func> <f:main>() { x := <s:`raw\\>\n"
     "<s:more`> + <s:\"s\\\"\"> <c:// c>\n"
     "\t<k:var> y <t:int64> = <s:'a'> }\n"},
    {"javascript",
     "const f = async (a) => { return `t ${a}\n"
     "x` + 'it\\'s' /* c */ }; $x.y(null, 1e9) // z\n",
     "<k:const> f = <k:async> (a) => { <k:return> <s:`t ${a}>\n"
     "<s:x`> + <s:'it\\'s'> <c:/* c */> }; $x.<f:y>(<o:null>, <n:1e9>) <c:// z>\n"},
    {"tsx",
     "interface A<T> extends B { readonly x: string; } @Inject() class C {}\n",
     "<k:interface> A<T> <k:extends> B { <k:readonly> x: <t:string>; } <p:@Inject>() <k:class> C {}\n"},
    {"java",
     "@Override public String f() { return \"\"\"\n"
     " text \"q\"\n"
     " \"\"\"; }\n",
     "<p:@Override> <k:public> <t:String> <f:f>() { <k:return> <s:\"\"\">\n"
     "<s: text \"q\">\n"
     "<s: \"\"\">; }\n"},
    {"bash",
     "#!/bin/sh\n"
     "for f in *.c; do echo \"$f is ${x}\" $HOME $1 $? ${a:-b} a#b # c\n"
     "'multi\n"
     "line' ; if [ -n \"$x\" ]; then apt-get install -y x; fi\n",
     "<c:#!/bin/sh>\n"
     "<k:for> f <k:in> *.c; <k:do> <f:echo> <s:\"$f is ${x}\"> <v:$HOME> <v:$1> <v:$?> <v:${a:-b}> a#b <c:# c>\n"
     "<s:'multi>\n"
     "<s:line'> ; <k:if> [ -n <s:\"$x\"> ]; <k:then> <f:apt-get> install -y x; <k:fi>\n"},
    {"SQL",
     "SELECT count(*), 'it''s' FROM \"t\" WHERE a >= 10 AND b IS NOT NULL -- c\n"
     "/* x\n"
     "y */ create table t (id INTEGER primary key, s varchar(20));\n",
     "<k:SELECT> <f:count>(*), <s:'it''s'> <k:FROM> <s:\"t\"> <k:WHERE> a >= <n:10> <k:AND> b <k:IS> <k:NOT> <o:NULL> <c:-- c>\n"
     "<c:/* x>\n"
     "<c:y */> <k:create> <k:table> t (id <t:INTEGER> <k:primary> <k:key>, s <t:varchar>(<n:20>));\n"},
    {"json",
     "{\"a\": [1, -2.5e3, true, null, \"x\\\"y\"], \"b\" : {\"c\": \"d\"}} // c\n",
     "{<y:\"a\">: [<n:1>, -<n:2.5e3>, <o:true>, <o:null>, <s:\"x\\\"y\">], <y:\"b\"> : {<y:\"c\">: <s:\"d\">}} <c:// c>\n"},
    {"yaml",
     "# c\n"
     "---\n"
     "key: value # c\n"
     "\"quoted\": 'x'\n"
     "list:\n"
     "  - a: 1\n"
     "  - true\n"
     "  - url: http://x.y:80/z\n"
     "    n: -3.5\n"
     "    flow: [a, 2, {b: null}]\n"
     "    anchor: &x\n"
     "    ref: *x\n"
     "    tag: !!str 5\n"
     "    s: \"a\\\"b\"\n"
     "    multi word key: yes\n"
     "    time: 12:30\n",
     "<c:# c>\n"
     "<p:--->\n"
     "<y:key>: value <c:# c>\n"
     "<s:\"quoted\">: <s:'x'>\n"
     "<y:list>:\n"
     "  - <y:a>: <n:1>\n"
     "  - <o:true>\n"
     "  - <y:url>: http://x.y:80/z\n"
     "    <y:n>: <n:-3.5>\n"
     "    <y:flow>: [a, <n:2>, {b: null}]\n"
     "    <y:anchor>: <v:&x>\n"
     "    <y:ref>: <v:*x>\n"
     "    <y:tag>: <t:!!str> <n:5>\n"
     "    <y:s>: <s:\"a\\\"b\">\n"
     "    <y:multi word key>: <o:yes>\n"
     "    <y:time>: 12:30\n"},
    {"html",
     "<!DOCTYPE html>\n"
     "<a href=\"x.html\" class='b c' disabled>t &amp; &x </a><br/> <!-- c\n"
     "still --> 1 < 2 <p\n"
     " id=\"multi\n"
     "line\">\n"
     "<?xml version=\"1.0\"?>\n",
     "<g:<!DOCTYPE> <y:html><g:>>\n"
     "<g:<a> <y:href>=<s:\"x.html\"> <y:class>=<s:'b c'> <y:disabled><g:>>t <o:&amp;> &x <g:</a><br/>> <c:<!-- c>\n"
     "<c:still -->> 1 < 2 <g:<p>\n"
     " <y:id>=<s:\"multi>\n"
     "<s:line\"><g:>>\n"
     "<g:<?xml> <y:version>=<s:\"1.0\"><g:?>>\n"},
    {"css",
     "@media (max-width: 10px) { a:hover, .b > #c { color: #fff; margin: 1.5em auto !important; } }\n"
     "/* c\n"
     "d */ :root { --x: url(\"y\"); background: rgb(1, 2, 3) }\n",
     "<k:@media> (<g:max-width:> <g:10px>) { <y:a>:hover, .b > <n:#c> { <y:color>: <n:#fff>; <y:margin>: <n:1.5em> auto <k:!important>; } }\n"
     "<c:/* c>\n"
     "<c:d */> <g::root> { <y:--x>: <f:url>(<s:\"y\">); <y:background>: <f:rgb>(<n:1>, <n:2>, <n:3>) }\n"},
    {"diff",
     "diff --git a/x b/x\n"
     "--- a/x\n"
     "+++ b/x\n"
     "@@ -1 +1 @@\n"
     "-old\n"
     "+new\n"
     " same\n",
     "<k:diff --git a/x b/x>\n"
     "<k:--- a/x>\n"
     "<k:+++ b/x>\n"
     "<hunk:@@ -1 +1 @@>\n"
     "<del:-old>\n"
     "<add:+new>\n"
     " same\n"},
    {"{.python title=x}",
     "if x: pass\n",
     "<k:if> x: <k:pass>\n"},
    {"Py:file.py",
     "if\n",
     "<k:if>\n"},
    {"brainfuck",
     "if (x) { \"s\" } // no\n",
     "if (x) { \"s\" } // no\n"},
    {"",
     "int\n",
     "int\n"},
};
/* clang-format on */
enum { N_CASES = sizeof cases / sizeof cases[0] };

struct marking {
    const char *s;
    size_t at; /* pieces come in order, without gaps */
    enum md_role role;
    struct cw_buf *out;
};

static void mark(void *arg, enum md_role role, size_t begin, size_t end) {
    struct marking *k = arg;
    ck_assert_uint_eq(begin, k->at);
    ck_assert_uint_ge(end, begin);
    ck_assert_int_lt(role, MD_N_ROLES);
    k->at = end;
    if (begin == end) {
        return;
    }
    if (role != k->role) {
        cw_buf_puts(k->out, k->role != MD_CODE_TEXT ? ">" : "");
        if (role != MD_CODE_TEXT) {
            ck_assert_ptr_nonnull(names[role]);
            cw_buf_printf(k->out, "<%s:", names[role]);
        }
        k->role = role;
    }
    cw_buf_add(k->out, k->s + begin, end - begin);
}

static void mark_lines(const char *language, const char *s, size_t n, struct cw_buf *out) {
    struct cw_hl hl = cw_hl_begin(language, strlen(language));
    while (n > 0) {
        const char *newline = memchr(s, '\n', n);
        size_t len = newline != NULL ? (size_t)(newline - s) : n;
        /* a copy of its own, so that reading past it is seen */
        char *line = cw_malloc(len);
        memcpy(line, s, len);
        struct marking k = {line, 0, MD_CODE_TEXT, out};
        cw_hl_line(&hl, line, len, mark, &k);
        ck_assert_uint_eq(k.at, len);
        cw_buf_puts(out, k.role != MD_CODE_TEXT ? ">\n" : "\n");
        free(line);
        s += len + (newline != NULL);
        n -= len + (newline != NULL);
    }
}

START_TEST(colours) {
    struct cw_buf got = {0};
    mark_lines(cases[_i].language, cases[_i].source, strlen(cases[_i].source), &got);
    ck_assert_msg(strcmp(got.data, cases[_i].marked) == 0, "%s:\n%s\ninstead of\n%s",
                  cases[_i].language, got.data, cases[_i].marked);
    cw_buf_free(&got);
}
END_TEST

static void check_sorted(const char *language, const struct cw_hl_words *words) {
    for (size_t i = 1; i < words->n; i++) {
        ck_assert_msg(strcmp(words->v[i - 1], words->v[i]) < 0, "%s: %s before %s", language,
                      words->v[i - 1], words->v[i]);
    }
}

START_TEST(words_are_sorted) {
    for (size_t i = 0; i < cw_hl_n_langs; i++) {
        const struct cw_hl_code *code = cw_hl_langs[i].code;
        if (code != NULL) {
            check_sorted(cw_hl_langs[i].names, &code->keywords);
            check_sorted(cw_hl_langs[i].names, &code->types);
            check_sorted(cw_hl_langs[i].names, &code->constants);
        }
    }
}
END_TEST

START_TEST(every_name_finds_its_language) {
    for (size_t i = 0; i < cw_hl_n_langs; i++) {
        for (const char *at = cw_hl_langs[i].names; *at != '\0';) {
            size_t n = strcspn(at, " ");
            ck_assert_ptr_eq(cw_hl_begin(at, n).lang, &cw_hl_langs[i]);
            at += n + (at[n] == ' ');
        }
    }
    ck_assert_ptr_null(cw_hl_begin("", 0).lang);
    ck_assert_ptr_null(cw_hl_begin("cobolcobolcobolcobolcobolcobol", 30).lang);
}
END_TEST

/* Any bytes: pieces without gaps, no byte read that is not there. */
START_TEST(any_bytes) {
    static const char *const parts[] = {
        "\"",  "'",  "`",    "\"\"\"", "'''", "/*",   "*/",  "//", "#",  "--", "<!--", "-->",
        "<a ", ">",  "{",    "}",      "\\",  "r#\"", "\"#", "b'", "$",  "${", "@",    "&",
        ";",   ":",  "%",    "1",      "0x",  "e+",   ".",   "..", "#[", "]",  "\n",   "\n",
        " ",   "\t", "\xff", "\xc3",   "if",  "f(",   "x",   "-",  "+",  "@@", "!",    "url(",
    };
    uint64_t random_state = (uint64_t)_i + 1;
    struct cw_buf text = {0}, out = {0};
    for (int k = 0; k < 300; k++) {
        cw_buf_clear(&text);
        cw_buf_clear(&out);
        for (int j = 0; j < 40; j++) {
            random_state = random_state * 6364136223846793005u + 1442695040888963407u;
            size_t r = (size_t)(random_state >> 33);
            cw_buf_puts(&text, parts[r % (sizeof parts / sizeof parts[0])]);
            if (r % 31 == 0) {
                cw_buf_putc(&text, '\0');
            }
        }
        char name[32];
        size_t n = strcspn(cw_hl_langs[_i].names, " ");
        memcpy(name, cw_hl_langs[_i].names, n);
        name[n] = '\0';
        mark_lines(name, text.data, text.len, &out);
    }
    cw_buf_free(&text);
    cw_buf_free(&out);
}
END_TEST

int main(void) {
    Suite *s = suite_create("md_highlight");
    TCase *t = tcase_create("highlight");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, colours, 0, N_CASES);
    tcase_add_test(t, words_are_sorted);
    tcase_add_test(t, every_name_finds_its_language);
    tcase_add_loop_test(t, any_bytes, 0, (int)cw_hl_n_langs);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
