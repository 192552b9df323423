/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `%{ print(tcpi_snd_cwnd); cwnd += 1; assert tcpi_snd_cwnd == cwnd, tcpi_snd_cwnd }%`: the subset
 * of Python that scripts use, with numbers, the fields of TCP_INFO of the last connection, and
 * names assigned by earlier code of the script.
 *
 *   code        = statement { ( ";" | newline ) statement }
 *   statement   = "assert" expression [ "," message ] | "print" arguments | "pass"
 *               | name ( "=" | "+=" | "-=" | "*=" ) expression
 *   expression  = conjunction { "or" conjunction }
 *   conjunction = negation { "and" negation }
 *   negation    = "not" negation | bits { ( "==" | "!=" | "<=" | ">=" | "<" | ">" ) bits }
 *   bits        = sum { ( "&" | "|" ) sum }
 *   sum         = product { ( "+" | "-" ) product }
 *   product     = atom { ( "*" | "//" | "/" | "%" ) atom }
 *   atom        = number | constant | field | name | "-" atom | "(" expression ")"
 *               | ( "abs" | "int" | "min" | "max" ) "(" expression { "," expression } ")"
 *
 * "/" is Python 3's. Messages are ignored; print() prints strings as written.
 */
#include <ctype.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "script/script.h"

#define F(name)                                                                                    \
    {                                                                                              \
#name, offsetof(struct tcp_info, name), sizeof(((struct tcp_info *)0)->name)               \
    }

static const struct {
    const char *name;
    size_t at, n_bytes;
} fields[] = {
    F(tcpi_state),
    F(tcpi_ca_state),
    F(tcpi_retransmits),
    F(tcpi_probes),
    F(tcpi_backoff),
    F(tcpi_options),
    F(tcpi_rto),
    F(tcpi_ato),
    F(tcpi_snd_mss),
    F(tcpi_rcv_mss),
    F(tcpi_unacked),
    F(tcpi_sacked),
    F(tcpi_lost),
    F(tcpi_retrans),
    F(tcpi_pmtu),
    F(tcpi_rtt),
    F(tcpi_rttvar),
    F(tcpi_snd_ssthresh),
    F(tcpi_snd_cwnd),
    F(tcpi_advmss),
    F(tcpi_reordering),
    F(tcpi_total_retrans),
    F(tcpi_notsent_bytes),
    F(tcpi_min_rtt),
    F(tcpi_bytes_acked),
    F(tcpi_bytes_received),
    F(tcpi_segs_out),
    F(tcpi_segs_in),
    F(tcpi_bytes_retrans),
    F(tcpi_dsack_dups),
    F(tcpi_reord_seen),
    F(tcpi_delivered),
    F(tcpi_delivered_ce),
    F(tcpi_fackets),
    F(tcpi_last_data_sent),
    F(tcpi_last_data_recv),
    F(tcpi_last_ack_recv),
    F(tcpi_rcv_ssthresh),
    F(tcpi_rcv_rtt),
    F(tcpi_rcv_space),
    F(tcpi_pacing_rate),
    F(tcpi_max_pacing_rate),
    F(tcpi_data_segs_in),
    F(tcpi_data_segs_out),
    F(tcpi_delivery_rate),
    F(tcpi_busy_time),
    F(tcpi_rwnd_limited),
    F(tcpi_sndbuf_limited),
    F(tcpi_bytes_sent),
    F(tcpi_rcv_ooopack),
    F(tcpi_snd_wnd),
};

/* 64 bits of mantissa: each field of TCP_INFO is exact. */
typedef long double number;

struct code {
    struct run *r;
    int line;
    const char *p, *end;
    unsigned depth; /* of parentheses, in which a newline is space */
    bool has_info;
    struct tcp_info info;
    char not_held[160]; /* the last false comparison */
};

static number expression(struct code *x);

static _Noreturn void NJ_PRINTF(2, 3) fail(const struct code *x, const char *format, ...)
{
    char text[512];
    va_list ap;

    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    script_fail(x->r->s, x->line, "%s", text);
}

/* --- words ------------------------------------------------------------------------------------ */

static void space(struct code *x)
{
    for (; x->p < x->end; x->p++) {
        if (*x->p == '#')
            while (x->p + 1 < x->end && x->p[1] != '\n')
                x->p++;
        else if (*x->p == '\\' && x->p + 1 < x->end && x->p[1] == '\n')
            x->p++;
        else if (*x->p == '\n' ? x->depth == 0 : !isspace((unsigned char)*x->p))
            return;
    }
}

static bool in_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static bool is(struct code *x, const char *token)
{
    size_t n = strlen(token);

    space(x);
    if ((size_t)(x->end - x->p) < n || strncmp(x->p, token, n) != 0 ||
        (in_word(token[n - 1]) && x->p + n < x->end && in_word(x->p[n])))
        return false;
    x->p += n;
    return true;
}

static void want(struct code *x, const char *token)
{
    if (!is(x, token))
        fail(x, "expected '%s' before \"%.*s\"", token, (int)strcspn(x->p, "\n"), x->p);
}

static void open_parenthesis(struct code *x)
{
    if (++x->depth > SCRIPT_DEPTH_MAX)
        fail(x, "parentheses deeper than %u", SCRIPT_DEPTH_MAX);
}

static void close_parenthesis(struct code *x)
{
    want(x, ")");
    x->depth--;
}

static bool word(struct code *x, char name[SCRIPT_WORD_MAX])
{
    size_t n = 0;

    space(x);
    while (x->p + n < x->end && in_word(x->p[n]) && n < SCRIPT_WORD_MAX - 1)
        n++;
    if (n == 0 || isdigit((unsigned char)*x->p))
        return false;
    memcpy(name, x->p, n);
    name[n] = '\0';
    x->p += n;
    return true;
}

/* --- values ----------------------------------------------------------------------------------- */

static bool field(struct code *x, const char *name, number *value)
{
    uint64_t v = 0; /* little endian, like all of this program */
    bool found = false;

    if (strncmp(name, "tcpi_", 5) != 0)
        return false;
    if (!x->has_info)
        fail(x, "there is no connection to ask for TCP_INFO");
    for (size_t i = 0; i < NJ_ARRAY_LEN(fields) && !found; i++) {
        found = strcmp(fields[i].name, name) == 0;
        if (found)
            memcpy(&v, (const char *)&x->info + fields[i].at, fields[i].n_bytes);
    }
    /* these two are bit-fields, which have no offset */
    if (strcmp(name, "tcpi_snd_wscale") == 0)
        v = x->info.tcpi_snd_wscale;
    else if (strcmp(name, "tcpi_rcv_wscale") == 0)
        v = x->info.tcpi_rcv_wscale;
    else if (!found)
        return false;
    *value = (number)v;
    return true;
}

static struct variable *variable(struct run *r, const char *name, bool make)
{
    for (uint32_t i = 0; i < r->n_variables; i++)
        if (strcmp(r->variable[i].name, name) == 0)
            return &r->variable[i];
    if (!make || r->n_variables == SCRIPT_VARIABLES_MAX)
        return NULL;
    struct variable *v = &r->variable[r->n_variables++];
    snprintf(v->name, sizeof v->name, "%s", name);
    return v;
}

/* abs(), int(), min() and max(), after their name. */
static number function(struct code *x, const char *name)
{
    bool largest = strcmp(name, "max") == 0;

    want(x, "(");
    open_parenthesis(x);
    number n = expression(x);
    while (is(x, ",")) {
        number other = expression(x);
        n = (other > n) == largest ? other : n;
    }
    close_parenthesis(x);
    if (strcmp(name, "abs") == 0)
        return n < 0 ? -n : n;
    return strcmp(name, "int") == 0 ? (number)(int64_t)n : n;
}

static number atom(struct code *x)
{
    static const char *const functions[] = {"abs", "int", "min", "max"};
    static const char *const truths[] = {"False", "True"};
    char name[SCRIPT_WORD_MAX], *end;
    const char *begin;
    number n;
    int64_t constant;

    if (is(x, "-"))
        return -atom(x);
    if (is(x, "(")) {
        open_parenthesis(x);
        n = expression(x);
        close_parenthesis(x);
        return n;
    }
    begin = x->p;
    if (x->p < x->end && (isdigit((unsigned char)*x->p) || *x->p == '.')) {
        n = strtold(x->p, &end);
        if (end > x->p && end <= x->end) {
            x->p = end;
            return n;
        }
    }
    if (!word(x, name))
        fail(x, "expected a number before \"%.*s\"", (int)strcspn(begin, "\n}"), begin);
    for (size_t i = 0; i < NJ_ARRAY_LEN(functions); i++)
        if (strcmp(name, functions[i]) == 0)
            return function(x, name);
    for (int i = 0; i < (int)NJ_ARRAY_LEN(truths); i++)
        if (strcmp(name, truths[i]) == 0)
            return i;
    const struct variable *v = variable(x->r, name, false);
    if (v)
        return v->value;
    if (field(x, name, &n))
        return n;
    if (!name_value(name, &constant))
        fail(x, "%s is neither number nor field of TCP_INFO, and has no value", name);
    return (number)constant;
}

static number product(struct code *x)
{
    number n = atom(x), by;

    for (;;) {
        bool floor = is(x, "//"), rest = !floor && is(x, "%");
        if (!floor && !rest && is(x, "*")) {
            n *= atom(x);
            continue;
        }
        if (!floor && !rest && !is(x, "/"))
            return n;
        by = atom(x);
        if (!(by < 0) && !(by > 0))
            fail(x, "division by zero");
        int64_t whole =
            (int64_t)(n / by) - ((n < 0) != (by < 0) && n - by * (int64_t)(n / by) != 0);
        n = rest ? n - by * (number)whole : floor ? (number)whole : n / by;
    }
}

static number sum(struct code *x)
{
    number n = product(x);

    for (;;) {
        if (is(x, "+"))
            n += product(x);
        else if (is(x, "-"))
            n -= product(x);
        else
            return n;
    }
}

static number bits(struct code *x)
{
    number n = sum(x);

    for (;;) {
        if (is(x, "&"))
            n = (number)((int64_t)n & (int64_t)sum(x));
        else if (is(x, "|"))
            n = (number)((int64_t)n | (int64_t)sum(x));
        else
            return n;
    }
}

/* As in Python, `a <= b < c` is both. */
static number comparison(struct code *x)
{
    static const char *const ops[] = {"==", "!=", "<=", ">=", "<", ">"};
    number a = bits(x), b;
    bool any = false, all = true;

    for (;; a = b, any = true) {
        unsigned op = 0;
        while (op < NJ_ARRAY_LEN(ops) && !is(x, ops[op]))
            op++;
        if (op == NJ_ARRAY_LEN(ops))
            return any ? (number)all : a;
        b = bits(x);
        bool less = a<b, more = a> b;
        const bool holds[] = {!less && !more, less || more, !more, !less, less, more};
        if (!holds[op])
            snprintf(x->not_held, sizeof x->not_held, "%.18Lg %s %.18Lg", a, ops[op], b);
        all &= holds[op];
    }
}

static bool truth(number n)
{
    return n < 0 || n > 0;
}

static number negation(struct code *x)
{
    if (!is(x, "not"))
        return comparison(x);
    if (++x->depth > 2 * SCRIPT_DEPTH_MAX)
        fail(x, "too many times not");
    number n = negation(x);
    x->depth--;
    return !truth(n);
}

static number conjunction(struct code *x)
{
    number n = negation(x);

    while (is(x, "and")) {
        number other = negation(x);
        n = truth(n) ? other : n;
    }
    return n;
}

static number expression(struct code *x)
{
    number n = conjunction(x);

    while (is(x, "or")) {
        number other = conjunction(x);
        n = truth(n) ? n : other;
    }
    return n;
}

/* --- statements ------------------------------------------------------------------------------- */

/* A string in quotes, if one comes next. */
static bool string(struct code *x, const char **from, size_t *n)
{
    space(x);
    if (x->p == x->end || (*x->p != '"' && *x->p != '\''))
        return false;
    const char *close = memchr(x->p + 1, *x->p, (size_t)(x->end - x->p - 1));
    if (!close)
        fail(x, "the string has no end: %.20s", x->p);
    *from = x->p + 1;
    *n = (size_t)(close - *from);
    x->p = close + 1;
    return true;
}

static bool at_end(struct code *x)
{
    space(x);
    return x->p == x->end || *x->p == '\n' || *x->p == ';';
}

/* Skips an assertion's message: its strings may contain terminators. */
static void skip_message(struct code *x)
{
    const char *from;
    size_t n;

    while (x->p < x->end && *x->p != '\n' && *x->p != ';')
        if (!string(x, &from, &n) && x->p < x->end)
            x->p++;
}

static void assertion(struct code *x)
{
    const char *begin = x->p;

    snprintf(x->not_held, sizeof x->not_held, "it");
    number n = expression(x);
    int len = (int)(x->p - begin);
    if (!truth(n))
        fail(x, "assert%.*s: %s does not hold", len, begin, x->not_held);
    if (is(x, ","))
        skip_message(x);
}

static void print(struct code *x)
{
    bool parenthesis = is(x, "(");
    const char *from;
    char line[512] = "";
    size_t n, at = 0;

    if (parenthesis)
        open_parenthesis(x);
    while (!(parenthesis ? is(x, ")") : at_end(x))) {
        if (string(x, &from, &n))
            at += (size_t)snprintf(line + at, sizeof line - at, " %.*s", (int)n, from);
        else
            at += (size_t)snprintf(line + at, sizeof line - at, " %.18Lg", expression(x));
        at = at < sizeof line ? at : sizeof line - 1;
        if (!is(x, ",")) /* "..." % value: printed one after the other */
            is(x, "%");
    }
    printf("%s:%d:%s\n", x->r->s->path, x->line, line);
    x->depth -= parenthesis;
}

static void assignment(struct code *x)
{
    static const char *const ops[] = {"+=", "-=", "*=", "="};
    const char *begin = x->p;
    char name[SCRIPT_WORD_MAX];
    unsigned op = 0;

    bool named = word(x, name);
    while (named && op < NJ_ARRAY_LEN(ops) && !is(x, ops[op]))
        op++;
    if (!named || op == NJ_ARRAY_LEN(ops) || *x->p == '=')
        fail(x, "unknown statement: %.*s", (int)strcspn(begin, "\n}"), begin);
    number n = expression(x);
    struct variable *v = variable(x->r, name, op == 3);
    if (!v)
        fail(x, op == 3 ? "%s: there are too many names" : "%s has no value yet", name);
    v->value = op == 0 ? v->value + n : op == 1 ? v->value - n : op == 2 ? v->value * n : n;
}

static void statement(struct code *x)
{
    if (is(x, "assert"))
        assertion(x);
    else if (is(x, "print"))
        print(x);
    else if (!is(x, "pass"))
        assignment(x);
    if (!at_end(x))
        fail(x, "behind the statement: \"%.*s\"", (int)strcspn(x->p, "\n}"), x->p);
}

void run_code(struct run *r, const struct event *e)
{
    struct code x = {.r = r, .line = e->line, .p = e->text, .end = strstr(e->text, "}%")};
    socklen_t n = sizeof x.info;

    x.has_info = r->call.getsockopt(r->call.userdata, run_live_fd(r, r->last_conn), IPPROTO_TCP,
                                    TCP_INFO, &x.info, &n) == 0;
    for (;;) {
        while (at_end(&x) && x.p < x.end)
            x.line += *x.p++ == '\n';
        if (x.p == x.end)
            return;
        statement(&x);
    }
}
