/* SPDX-License-Identifier: BSD-3-Clause */
/* nightjar doctor: prints findings as text or JSON. */
#include <stdarg.h>
#include <string.h>

#include "base/json_escape_utf8.h"
#include "doctor/doctor.h"

static const char *const words[NJ_N_VERDICTS] = {"ok", "warning", "error"};

/* append_text() reserves space for it */
static const char more[] = "# more lines of the same kind did not fit\n";

/* Replaces control characters, since names may contain terminal escapes. */
static void clean(char *text, const char *keep)
{
    for (char *p = text; *p; p++)
        if (((*p >= 0 && *p < 0x20) || *p == 0x7f) && !strchr(keep, *p))
            *p = '?';
}

/* Appends all of the text or nothing, so that no command is cut in half. */
static void NJ_PRINTF(2, 0) append_text(struct nj_text *t, const char *fmt, va_list ap)
{
    size_t room = sizeof t->p - sizeof more - t->n;
    int put = vsnprintf(t->p + t->n, room, fmt, ap);

    if (put < 0 || (size_t)put >= room) {
        t->p[t->n] = '\0';
        t->cut = true;
        return;
    }
    clean(t->p + t->n, "\n");
    t->n += (size_t)put;
}

static void print_as_text(struct nj_doctor *d, const struct nj_finding *f)
{
    fprintf(d->out, "%-8s %-26s %s\n", words[f->verdict], f->id, f->what.p);
    for (const char *p = f->advice.p; *p;) {
        size_t n = strcspn(p, "\n");
        fputs("         ", d->out);
        fwrite(p, 1, n, d->out);
        fputc('\n', d->out);
        p += n + (p[n] == '\n');
    }
}

static void put_member(struct nj_doctor *d, const char *before, const char *key, const char *value,
                       size_t n)
{
    char text[NJ_JSON_ESCAPED_MAX(sizeof(struct nj_text))];
    struct nj_str s = {value, (uint32_t)n};
    size_t n_text = nj_json_escape(text, sizeof text, s, NJ_JSON_LATIN1);

    fprintf(d->out, "%s\"%s\": \"%.*s\"", before, key, (int)n_text, text);
}

static void print_as_json(struct nj_doctor *d, const struct nj_finding *f)
{
    bool is_first = true;

    for (int i = 0; i < NJ_N_VERDICTS; i++)
        is_first &= d->n_printed[i] == 0;
    put_member(d, is_first ? "\n  {" : ",\n  {", "id", f->id, strlen(f->id));
    put_member(d, ", ", "verdict", words[f->verdict], strlen(words[f->verdict]));
    put_member(d, ", ", "what", f->what.p, f->what.n);
    put_member(d, ", ", "advice", f->advice.p,
               f->advice.n ? f->advice.n - 1 : 0); /* without the last '\n' */
    fputs("}", d->out);
}

void nj__print_finding(struct nj_doctor *d)
{
    struct nj_finding *f = &d->finding;

    if (!*f->id)
        return;
    if (f->advice.cut) {
        memcpy(f->advice.p + f->advice.n, more, sizeof more);
        f->advice.n += sizeof more - 1;
    }
    if (d->json)
        print_as_json(d, f);
    else
        print_as_text(d, f);
    d->n_printed[f->verdict]++;
    *f->id = '\0';
}

void nj__begin_finding(struct nj_doctor *d, const char *id_fmt, ...)
{
    struct nj_finding *f = &d->finding;
    va_list ap;

    nj__print_finding(d);
    *f = (struct nj_finding){.verdict = NJ_VERDICT_OK};
    va_start(ap, id_fmt);
    vsnprintf(f->id, sizeof f->id, id_fmt, ap);
    va_end(ap);
    clean(f->id, "");
}

void nj__add_text(struct nj_doctor *d, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    append_text(&d->finding.what, fmt, ap);
    va_end(ap);
}

void nj__set_verdict(struct nj_doctor *d, enum nj_verdict verdict, const char *fmt, ...)
{
    va_list ap;

    d->finding.verdict = verdict;
    va_start(ap, fmt);
    append_text(&d->finding.what, fmt, ap);
    va_end(ap);
}

void nj__advise(struct nj_doctor *d, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    append_text(&d->finding.advice, fmt, ap);
    va_end(ap);
}

const char *nj__shell_word(char *word, size_t n, const char *name)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./:-";
    size_t at = 0;

    if (*name && !name[strspn(name, plain)]) {
        snprintf(word, n, "%s", name);
        return word;
    }
    word[at++] = '\'';
    for (; *name && at + 6 < n; name++)
        at += (size_t)snprintf(word + at, n - at, *name == '\'' ? "'\\''" : "%c", *name);
    snprintf(word + at, n - at, "'");
    return word;
}

void nj__advise_cmdline(struct nj_doctor *d, const char *name, const char *words_more)
{
    char line[2048], is[2048];

    snprintf(line, sizeof line, "GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX %s\"", words_more);
    if (!nj__host_exists(d, "/etc/default/grub")) {
        nj__advise(d, "# add to the kernel's command line, and reboot: %s\n" NJ_UNTESTED,
                   words_more);
        return;
    }
    nj__host_line(d, is, sizeof is, "/etc/default/grub.d/nightjar-%s.cfg", name);
    if (strcmp(is, line) != 0)
        nj__advise(d, "echo '%s' | %stee /etc/default/grub.d/nightjar-%s.cfg\n", line, d->sudo,
                   name);
    nj__advise(d, "%supdate-grub\n# and reboot\n" NJ_UNTESTED, d->sudo);
}
