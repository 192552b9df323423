/* SPDX-License-Identifier: BSD-3-Clause */
/* Completions of command lines: functions for bash(1) and for zsh's _arguments. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "ctl/command_table.h"
#include "help.h"
#include "option_docs.h"
#include "option_table.h"

/* An option of either table. */
struct entry {
    char letter; /* 0: none */
    const char *name, *value, *help;
    const char *words; /* its values, with '|' between them; NULL: not these only */
    bool may_repeat;
};

static uint32_t entries_of_server(struct entry out[NJ_OPTIONS_MAX])
{
    uint32_t n = 0;

    for (const struct nj_option *o = nj_options; o < nj_options + nj_n_options; o++)
        if (nj_option_is_named(o))
            out[n++] = (struct entry){.name = o->name,
                                      .value = help_value(o),
                                      .help = o->help,
                                      .words = o->kind == NJ_OPTION_WORD ? o->expected : NULL,
                                      .may_repeat = nj_option_may_repeat(o)};
    return n;
}

static uint32_t entries_of_load(struct entry out[NJ_OPTIONS_MAX])
{
    for (uint32_t i = 0; i < load_n_options; i++) {
        const struct load_option *o = &load_option_table[i];
        out[i] = (struct entry){.letter = o->code < 256 ? (char)o->code : '\0',
                                .name = o->name,
                                .value = o->value ? o->value : "",
                                .help = o->help,
                                .may_repeat = o->code == LOAD_OPTION_LINK || o->code == 'H'};
    }
    return load_n_options;
}

/* `nightjar doctor` (app/doctor/main.c), without --sysroot, which is for tests. */
static const struct entry doctor[] = {
    {.name = "user", .value = "NAME", .help = "user that will run nightjar"},
    {.name = "lcores", .value = "LIST", .help = "CPUs of the lcores"},
    {.name = "json", .value = "", .help = "print a JSON object"},
    {.name = "help", .value = "", .help = "print the options and exit"},
};
#define N_DOCTOR (sizeof doctor / sizeof doctor[0])

static uint32_t entries_of_ctl(struct entry out[NJ_OPTIONS_MAX])
{
    for (uint32_t i = 0; i < CTL_N_OPTIONS; i++)
        out[i] = (struct entry){.letter = ctl_options[i].letter,
                                .name = ctl_options[i].name,
                                .value = ctl_options[i].value,
                                .help = ctl_options[i].help};
    return CTL_N_OPTIONS;
}

/* The commands of ctl, with a space between them. */
static const char *words_of_ctl(char words[256])
{
    size_t n = 0;

    for (uint32_t i = 0; i < CTL_N_COMMANDS && n < 256; i++)
        n += (size_t)snprintf(words + n, 256 - n, "%s%s", i > 0 ? " " : "", ctl_commands[i].name);
    return words;
}

static bool is_file(const struct entry *e)
{
    return strcmp(e->value, "FILE") == 0 || strcmp(e->value, "PATH") == 0;
}

static bool is_folder(const struct entry *e)
{
    return strcmp(e->value, "DIR") == 0;
}

static bool is_user(const struct entry *e)
{
    return strcmp(e->name, "user") == 0;
}

static bool is_preset(const struct entry *e)
{
    return strstr(e->name, "preset") != NULL;
}

/* --- bash ------------------------------------------------------------------------------------ */

/* A pattern of `case`: the options whose value has the kind. */
static bool put_case(const struct entry *e, uint32_t n, bool (*has_kind)(const struct entry *))
{
    bool any = false;

    for (uint32_t i = 0; i < n; i++) {
        if (!*e[i].value || !has_kind(&e[i]))
            continue;
        printf("%s--%s", any ? "|" : "    ", e[i].name);
        if (e[i].letter)
            printf("|-%c", e[i].letter);
        any = true;
    }
    if (any)
        printf(")\n");
    return any;
}

static bool is_other(const struct entry *e)
{
    return !e->words && !is_file(e) && !is_folder(e) && !is_user(e) && !is_preset(e);
}

/* `begin`: its first lines. `words`: what it offers beside the options. */
static void put_bash_function(const char *function, const char *begin, const char *words,
                              const struct entry *e, uint32_t n)
{
    printf("%s() {\n"
           "%s"
           "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
           "    COMPREPLY=()\n"
           "    case $prev in\n",
           function, begin);
    for (uint32_t i = 0; i < n; i++)
        if (e[i].words) {
            printf("    --%s)\n        COMPREPLY=($(compgen -W '", e[i].name);
            for (const char *p = e[i].words; *p; p++)
                putchar(*p == '|' ? ' ' : *p);
            printf("' -- \"$cur\"))\n        return ;;\n");
        }
    if (put_case(e, n, is_file))
        printf("        compopt -o filenames 2>/dev/null\n"
               "        mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n        return ;;\n");
    if (put_case(e, n, is_folder))
        printf("        compopt -o filenames 2>/dev/null\n"
               "        mapfile -t COMPREPLY < <(compgen -d -- \"$cur\")\n        return ;;\n");
    if (put_case(e, n, is_user))
        printf("        COMPREPLY=($(compgen -u -- \"$cur\"))\n        return ;;\n");
    if (put_case(e, n, is_preset))
        printf(
            "        COMPREPLY=($(compgen -W \"$(\"${COMP_WORDS[0]}\" --preset list 2>/dev/null |\n"
            "            cut -d ' ' -f 1) list\" -- \"$cur\"))\n        return ;;\n");
    if (put_case(e, n, is_other))
        printf("        return ;;\n");
    printf("    esac\n    COMPREPLY=($(compgen -W '%s", words);
    for (uint32_t i = 0; i < n; i++)
        printf(" --%s", e[i].name);
    printf("' -- \"$cur\"))\n}\n");
}

void write_bash(void)
{
    struct entry e[NJ_OPTIONS_MAX];
    char words[256];

    printf("# bash completion of nightjar, by nj-option-docs.\n");
    put_bash_function("_nightjar_doctor", "", "", doctor, N_DOCTOR);
    put_bash_function("_nightjar_ctl", "", words_of_ctl(words), e, entries_of_ctl(e));
    put_bash_function("_nightjar_top", "", "", e, entries_of_ctl(e));
    put_bash_function("_nightjar",
                      "    if [[ $COMP_CWORD -gt 1 && ${COMP_WORDS[1]} == doctor ]]; then\n"
                      "        _nightjar_doctor\n        return\n    fi\n"
                      "    if [[ $COMP_CWORD -gt 1 && ${COMP_WORDS[1]} == ctl ]]; then\n"
                      "        _nightjar_ctl\n        return\n    fi\n"
                      "    if [[ $COMP_CWORD -gt 1 && ${COMP_WORDS[1]} == top ]]; then\n"
                      "        _nightjar_top\n        return\n    fi\n",
                      "doctor convert ctl top --", e, entries_of_server(e));
    printf("complete -F _nightjar nightjar\n");
}

void write_load_bash(void)
{
    struct entry e[NJ_OPTIONS_MAX];

    printf("# bash completion of nightjar-load, by nj-option-docs.\n");
    put_bash_function("_nightjar_load", "", "--", e, entries_of_load(e));
    printf("complete -F _nightjar_load nightjar-load\n");
}

/* --- zsh ------------------------------------------------------------------------------------- */

/* Text in single quotes, in which _arguments takes "[]:" for its own. */
static void put_zsh(const char *text)
{
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\'", stdout);
        else if (strchr("[]:\\", *text))
            putchar('\\');
        putchar(*text);
    }
}

static void put_zsh_value(const struct entry *e)
{
    putchar(':');
    put_zsh(e->value);
    putchar(':');
    if (e->words) {
        putchar('(');
        for (const char *p = e->words; *p; p++)
            putchar(*p == '|' ? ' ' : *p);
        putchar(')');
    } else if (is_file(e))
        fputs("_files", stdout);
    else if (is_folder(e))
        fputs("_files -/", stdout);
    else if (is_user(e))
        fputs("_users", stdout);
    else if (is_preset(e))
        fputs("{compadd list ${${(f)\"$(_call_program presets ${words[1]} --preset list)\"}%% *}}",
              stdout);
    else
        putchar(' '); /* any text */
}

static void put_zsh_option(const char *dashes, const char *name, const struct entry *e)
{
    printf(" \\\n    '%s%s%s[", e->may_repeat ? "*" : "", dashes, name);
    put_zsh(e->help);
    putchar(']');
    if (*e->value)
        put_zsh_value(e);
    putchar('\'');
}

static void put_zsh_head(const char *program)
{
    printf("#compdef %s\n# zsh completion of %s, by nj-option-docs.\n", program, program);
}

static void put_zsh_arguments(const char *arguments, const struct entry *e, uint32_t n)
{
    printf("_arguments");
    for (uint32_t i = 0; i < n; i++) {
        const char letter[] = {e[i].letter, '\0'};
        put_zsh_option("--", e[i].name, &e[i]);
        if (*letter)
            put_zsh_option("-", letter, &e[i]);
    }
    printf(" \\\n    %s\n", arguments);
}

void write_zsh(void)
{
    struct entry e[NJ_OPTIONS_MAX];
    char words[256], arguments[320];

    put_zsh_head("nightjar");
    printf("if (( CURRENT > 2 )) && [[ ${words[2]} == doctor ]]; then\n");
    put_zsh_arguments("'1:command:(doctor)'", doctor, N_DOCTOR);
    printf("return\nfi\nif (( CURRENT > 2 )) && [[ ${words[2]} == ctl ]]; then\n");
    snprintf(arguments, sizeof arguments, "'1:command:(ctl)' '2:command:(%s)'",
             words_of_ctl(words));
    put_zsh_arguments(arguments, e, entries_of_ctl(e));
    printf("return\nfi\nif (( CURRENT > 2 )) && [[ ${words[2]} == top ]]; then\n");
    put_zsh_arguments("'1:command:(top)'", e, entries_of_ctl(e));
    printf("return\nfi\n");
    put_zsh_arguments("'1:command:(doctor convert ctl top)'", e, entries_of_server(e));
}

void write_load_zsh(void)
{
    struct entry e[NJ_OPTIONS_MAX];

    put_zsh_head("nightjar-load");
    put_zsh_arguments("'*:URL or path: '", e, entries_of_load(e));
}
