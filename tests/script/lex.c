/* SPDX-License-Identifier: BSD-3-Clause */
/* Words, numbers and values of a script. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "script/script.h"

void lex_space(struct script *s)
{
    for (;;) {
        if (*s->p == '\n') {
            s->line++;
            s->p++;
        } else if (isspace((unsigned char)*s->p)) {
            s->p++;
        } else if (s->p[0] == '/' && s->p[1] == '/') {
            s->p += strcspn(s->p, "\n");
        } else if (s->p[0] == '/' && s->p[1] == '*') {
            const char *end = strstr(s->p + 2, "*/");
            if (!end)
                script_fail(s, s->line, "the comment that begins here has no end");
            for (; s->p < end + 2; s->p++)
                s->line += *s->p == '\n';
        } else {
            return;
        }
    }
}

static bool word_char(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

bool lex_is(struct script *s, const char *token)
{
    size_t n = strlen(token);

    lex_space(s);
    if (strncmp(s->p, token, n) != 0)
        return false;
    if (word_char(token[n - 1]) && word_char(s->p[n]))
        return false; /* "ack" is not the beginning of "acks" */
    s->p += n;
    return true;
}

void lex_want(struct script *s, const char *token)
{
    if (!lex_is(s, token))
        script_fail(s, s->line, "expected '%s' before \"%.20s\"", token, s->p);
}

bool lex_number(struct script *s, int64_t *n)
{
    char *end;

    lex_space(s);
    if (!isdigit((unsigned char)*s->p))
        return false;
    bool hex = s->p[0] == '0' && (s->p[1] == 'x' || s->p[1] == 'X');
    *n = (int64_t)strtoull(s->p, &end, hex ? 16 : 10);
    s->p = end;
    return true;
}

int64_t lex_want_number(struct script *s, const char *what)
{
    int64_t n;
    if (!lex_number(s, &n))
        script_fail(s, s->line, "%s should be a number: \"%.20s\"", what, s->p);
    return n;
}

bool lex_word(struct script *s, char word[SCRIPT_WORD_MAX])
{
    size_t n = 0;

    lex_space(s);
    if (isdigit((unsigned char)*s->p))
        return false;
    while (word_char(s->p[n]))
        n++;
    if (n == 0)
        return false;
    if (n >= SCRIPT_WORD_MAX)
        script_fail(s, s->line, "a word of %zu letters", n);
    memcpy(word, s->p, n);
    word[n] = '\0';
    s->p += n;
    return true;
}

static void string_value(struct script *s, struct value *v)
{
    const char *end = strchr(s->p, '"');
    size_t n = end ? (size_t)(end - s->p) : SCRIPT_WORD_MAX;

    if (n >= SCRIPT_WORD_MAX)
        script_fail(s, s->line, "the string has no end, or is too long");
    v->kind = V_STRING;
    memcpy(v->text, s->p, n);
    s->p = end + 1;
}

static int64_t constant(struct script *s)
{
    char word[SCRIPT_WORD_MAX];
    int64_t n;

    if (lex_number(s, &n))
        return n;
    if (lex_is(s, "-"))
        return -lex_want_number(s, "what follows '-'");
    if (!lex_word(s, word))
        script_fail(s, s->line, "expected a value before \"%.20s\"", s->p);
    if (!name_value(word, &n))
        script_fail(s, s->line, "unknown constant %s", word);
    return n;
}

/* Parses `name=` or `name(...)=` before a member of a struct, or nothing. */
static void member_name(struct script *s, char name[SCRIPT_WORD_MAX])
{
    const char *p = s->p;
    int line = s->line;

    if (lex_word(s, name)) {
        if (lex_is(s, "(")) {
            s->p += strcspn(s->p, ")");
            lex_want(s, ")");
        }
        if (lex_is(s, "="))
            return;
    }
    name[0] = '\0';
    s->p = p;
    s->line = line;
}

static void list_value(struct script *s, struct value *v, const char *close, unsigned depth)
{
    v->kind = *close == ']' ? V_LIST : V_STRUCT;
    v->item = script_alloc(s, SCRIPT_ITEMS_MAX * sizeof *v->item);
    if (lex_is(s, close))
        return;
    do {
        if (v->n == SCRIPT_ITEMS_MAX)
            script_fail(s, s->line, "more than %u members", SCRIPT_ITEMS_MAX);
        struct value *item = &v->item[v->n++];
        if (v->kind == V_STRUCT)
            member_name(s, item->name);
        lex_value(s, item, depth + 1);
    } while (lex_is(s, ","));
    lex_want(s, close);
}

void lex_value(struct script *s, struct value *v, unsigned depth)
{
    if (depth > SCRIPT_DEPTH_MAX)
        script_fail(s, s->line, "lists in lists, deeper than %u", SCRIPT_DEPTH_MAX);
    if (lex_is(s, "...")) {
        v->kind = V_ELLIPSIS;
    } else if (lex_is(s, "[")) {
        list_value(s, v, "]", depth);
    } else if (lex_is(s, "{")) {
        list_value(s, v, "}", depth);
    } else if (lex_is(s, "\"")) {
        string_value(s, v);
    } else {
        v->kind = V_INT;
        v->num = constant(s);
        while (lex_is(s, "|"))
            v->num |= constant(s);
    }
}
