/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses a script to events: `TIME EVENT`, in sequence, with any line breaks. */
#include <stdlib.h>
#include <string.h>

#include "script/script.h"

/* --- options at the head -----------------------------------------------------------------------
 */

static void take_option(struct script *s, const char *name, const char *value)
{
    if (strcmp(name, "tolerance_usecs") == 0)
        s->tolerance_us = strtoll(value, NULL, 10);
    else if (strcmp(name, "so_flags") == 0)
        snprintf(s->flags, sizeof s->flags, "%s", value);
    else if (strcmp(name, "remote_isn") == 0)
        s->remote_isn = (uint32_t)strtoul(value, NULL, 0);
    else if (strcmp(name, "strict_options") == 0)
        s->strict_options = true;
    else if (strcmp(name, "strict_segments") == 0)
        s->strict_segments = true;
    else if (strcmp(name, "open_end") == 0)
        s->open_end = true;
    else if (strcmp(name, "mtu") == 0)
        s->mtu = (uint32_t)strtoul(value, NULL, 10);
    else if (strcmp(name, "send_omit_free") == 0)
        return; /* buffers of send() are not read again */
    else if (strcmp(name, "ip_version") == 0 && strcmp(value, "ipv4") == 0)
        s->v4_only = true;
    else if (strcmp(name, "ip_version") == 0 && strcmp(value, "ipv6") == 0)
        s->v6 = true;
    else
        script_fail(s, s->line, "--%s=%s is no option of this runner", name, value);
}

static void head(struct script *s)
{
    char word[SCRIPT_WORD_MAX], value[256] = "";

    while (lex_is(s, "--")) {
        if (!lex_word(s, word))
            script_fail(s, s->line, "-- without a name");
        size_t n = 0;
        if (*s->p == '=') {
            n = strcspn(++s->p, " \t\n");
            if (n >= sizeof value)
                script_fail(s, s->line, "--%s: too long", word);
            memcpy(value, s->p, n);
        }
        value[n] = '\0';
        s->p += n;
        take_option(s, word, value);
    }
}

/* --- times -------------------------------------------------------------------------------------
 */

/* Seconds as a decimal fraction, to microseconds. */
static int64_t seconds(struct script *s)
{
    int64_t whole = 0, us = 0, unit = 100000;
    const char *begin;

    lex_space(s);
    begin = s->p;
    while (*s->p >= '0' && *s->p <= '9')
        whole = whole * 10 + (*s->p++ - '0');
    if (s->p[0] == '.' && s->p[1] != '.') {
        for (s->p++; *s->p >= '0' && *s->p <= '9'; s->p++, unit /= 10)
            us += (*s->p - '0') * unit;
    }
    if (s->p == begin)
        script_fail(s, s->line, "expected a time before \"%.20s\"", s->p);
    return whole * 1000000 + us;
}

static void event_time(struct script *s, struct event *e)
{
    if (lex_is(s, "*")) {
        e->time = TIME_ANY;
        return;
    }
    e->time = lex_is(s, "+") ? TIME_RELATIVE : TIME_ABSOLUTE;
    e->at_us = seconds(s);
    if (lex_is(s, "...")) {
        lex_is(s, "+");
        e->is_blocking = true;
        e->end_us = seconds(s);
    } else if (lex_is(s, "~")) {
        lex_is(s, "+");
        e->is_range = true;
        e->end_us = seconds(s);
    }
}

/* --- events ------------------------------------------------------------------------------------
 */

/* `0x2`, or `-1 EAGAIN`. */
static void result(struct script *s, struct event *e)
{
    char word[SCRIPT_WORD_MAX];
    bool negative = lex_is(s, "-");

    e->any_result = false;
    e->result = lex_want_number(s, "the result");
    if (negative)
        e->result = -e->result;
    if (!negative || !lex_word(s, word))
        return;
    e->error = name_errno(word);
    if (!e->error)
        script_fail(s, s->line, "unknown errno %s", word);
}

static void call(struct script *s, struct event *e)
{
    e->kind = EVENT_CALL;
    if (!lex_word(s, e->call))
        script_fail(s, s->line, "no event begins with \"%.20s\"", s->p);
    lex_want(s, "(");
    e->args.kind = V_LIST;
    e->args.item = script_alloc(s, SCRIPT_ITEMS_MAX * sizeof *e->args.item);
    if (!lex_is(s, ")")) {
        do {
            if (e->args.n == SCRIPT_ITEMS_MAX)
                script_fail(s, s->line, "more than %u arguments", SCRIPT_ITEMS_MAX);
            lex_value(s, &e->args.item[e->args.n++], 0);
        } while (lex_is(s, ","));
        lex_want(s, ")");
    }
    e->any_result = true;
    if (!lex_is(s, "=") || lex_is(s, "..."))
        return;
    result(s, e);
    if (lex_is(s, "(")) { /* the meaning, as in strace's output */
        s->p += strcspn(s->p, ")\n");
        lex_want(s, ")");
    }
}

/* A shell command, after its first backtick: it would configure a kernel's TCP. */
static void command(struct script *s)
{
    const char *end = strchr(s->p, '`');

    if (!end)
        script_fail(s, s->line, "the shell command that begins here has no end");
    if (!s->foreign)
        script_fail(s, s->line, "shell commands are not run here; --foreign leaves them out");
    for (; s->p <= end; s->p++)
        s->line += *s->p == '\n';
}

static void event(struct script *s, struct event *e)
{
    event_time(s, e);
    lex_space(s);
    e->line = s->line;
    if (lex_is(s, "<") || lex_is(s, "inbound")) {
        e->pkt.inbound = true;
        segment_parse(s, &e->pkt);
    } else if (lex_is(s, ">") || lex_is(s, "outbound")) {
        segment_parse(s, &e->pkt);
        if (e->pkt.is_icmp)
            script_fail(s, e->line, "outbound ICMP is not for TCP to send");
    } else if (lex_is(s, "%{")) {
        e->kind = EVENT_CODE;
        e->text = s->p;
        const char *end = strstr(s->p, "}%");
        if (!end)
            script_fail(s, e->line, "%%{ without }%%");
        for (; s->p < end; s->p++)
            s->line += *s->p == '\n';
        s->p += 2;
    } else if (lex_is(s, "`")) {
        e->kind = EVENT_NOTHING;
        command(s);
    } else {
        call(s, e);
    }
    if (e->is_blocking && e->kind != EVENT_CALL)
        script_fail(s, e->line, "only a call can last");
}

void script_parse(struct script *s)
{
    s->p = s->text;
    s->line = 1;
    s->event = script_alloc(s, SCRIPT_EVENTS_MAX * sizeof *s->event);
    lex_space(s);
    head(s);
    for (lex_space(s); *s->p; lex_space(s)) {
        if (lex_is(s, "`")) { /* at the start and at the end without a time */
            command(s);
            continue;
        }
        if (s->n_events == SCRIPT_EVENTS_MAX)
            script_fail(s, s->line, "more than %u events", SCRIPT_EVENTS_MAX);
        event(s, &s->event[s->n_events++]);
    }
    if (s->n_events == 0)
        script_fail(s, 1, "the script is empty");
}
