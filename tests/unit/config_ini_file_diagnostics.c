/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that include others. */
#include <criterion/criterion.h>
#include <stdarg.h>
#include <string.h>

#include "config/ini_file_diagnostics.h"
#include "support/scratch.h"

static struct nj_diags faults;
static struct nj_ini *ini;

static void forget(void)
{
    nj_ini_free(ini);
    nj_diags_free(&faults);
    ini = NULL;
}

static void fini(void)
{
    forget();
    scratch_remove();
}

TestSuite(config_ini_file_diagnostics, .init = scratch_make, .fini = fini);

static void write_file(const char *name, const char *text)
{
    char path[128];

    snprintf(path, sizeof path, "%s/%s", scratch, name);
    FILE *f = fopen(path, "w");
    cr_assert(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

/* Reads the file `main`. Its sections, each with its keys. */
static const char *read_main(void)
{
    static char text[1024];
    char path[128];
    size_t at = 0;

    forget();
    text[0] = '\0';
    snprintf(path, sizeof path, "%s/main", scratch);
    ini = nj_ini_read(path, &faults);
    for (uint32_t i = 0; ini && i < ini->n_sections; i++) {
        const struct nj_ini_section *s = &ini->section[i];
        at += (size_t)snprintf(text + at, sizeof text - at, "%s[%s", i ? " " : "", s->name);
        for (uint32_t k = s->first; k < s->first + s->n; k++)
            at += (size_t)snprintf(text + at, sizeof text - at, " %s:%u:%s=%s",
                                   strrchr(ini->entry[k].file, '/') + 1, ini->entry[k].line,
                                   ini->entry[k].key, ini->entry[k].value);
        at += (size_t)snprintf(text + at, sizeof text - at, "]");
    }
    return text;
}

/* `expected`: the only fault, without the folder in front of each name. */
static void expect_fault(const char *expected)
{
    char line[512];

    read_main();
    snprintf(line, sizeof line, "%s/%s\n", scratch, expected);
    cr_expect_str_eq(faults.text ? faults.text : "", line);
    cr_expect_eq(faults.n, 1);
}

Test(config_ini_file_diagnostics, matches_in_the_order_of_their_names)
{
    char folder[64];

    snprintf(folder, sizeof folder, "%s/conf.d", scratch);
    cr_assert_eq(mkdir(folder, 0700), 0);
    write_file("main", "include = conf.d/*.conf\n[a]\nx = 1\n  include=conf.d/last # one\n[b]\n");
    cr_expect_str_eq(read_main(), "[a main:3:x=1] [b]");
    cr_expect_eq(faults.n, 1, "a plain name has to be there");
    write_file("conf.d/last", "[l]\nz = 3\n");
    cr_expect_str_eq(read_main(), "[a main:3:x=1] [l last:2:z=3] [b]");
    cr_expect_eq(faults.n, 0, "a pattern need match nothing");
    write_file("conf.d/10.conf", "[ten]\ny = 2\n");
    write_file("conf.d/09.conf", "[nine]\ny = 2\n");
    write_file("conf.d/.hidden.conf", "[hidden]\n");
    write_file("conf.d/10.conf~", "[backup]\n");
    cr_expect_str_eq(read_main(),
                     "[nine 09.conf:2:y=2] [ten 10.conf:2:y=2] [a main:3:x=1] [l last:2:z=3] [b]");
    cr_expect_eq(faults.n, 0);
    cr_expect_eq(ini->n_files, 5, "the pattern is one");
}

Test(config_ini_file_diagnostics, what_is_wrong_has_its_own_file_and_line)
{
    write_file("main", "[a]\ninclude = other\nx = 1\n");
    write_file("other", "[b]\n");
    expect_fault(
        "main:3: x: expected a [SECTION] before it: the include on line 2 ended the section");
    write_file("main", "include = other\n");
    write_file("other", "[b]\n\nx\n");
    expect_fault("other:3: x: expected KEY = VALUE or [SECTION]");
    write_file("other", "x = 1\n");
    expect_fault("other:1: x: expected a [SECTION] before it");
    write_file("main", "include = */x\n");
    expect_fault("main:1: include = */x: expected * and ? in the name of the file only");
    write_file("main", "\ninclude =\n");
    expect_fault("main:2: include: expected a value of 1 to 2047 characters");
}

Test(config_ini_file_diagnostics, loops)
{
    write_file("main", "[x]\ninclude = b*\n");
    write_file("b", "include = ./c\n");
    write_file("c", "\ninclude = main\n");
    read_main();
    cr_expect_eq(faults.n, 1);
    cr_expect(strstr(faults.text, "c:2: include = ") && strstr(faults.text, "main: a loop: "), "%s",
              faults.text);
    write_file("main", "include = main\n");
    read_main();
    cr_expect(faults.n == 1 && strstr(faults.text, "main:1: "), "%s", faults.text);
}

Test(config_ini_file_diagnostics, bounds)
{
    char name[8] = "main", next[8], text[64];

    for (unsigned i = 0; i < NJ_INI_DEPTH_MAX; i++) {
        snprintf(next, sizeof next, "d%u", i);
        snprintf(text, sizeof text, "include = %s\n", next);
        write_file(name, text);
        write_file(next, "");
        if (i + 1 < NJ_INI_DEPTH_MAX)
            read_main();
        else
            break;
        cr_expect_eq(faults.n, 0, "%s", faults.text);
        memcpy(name, next, sizeof name);
    }
    read_main();
    cr_expect(faults.n == 1 && strstr(faults.text, "at most 8 files that include each other"), "%s",
              faults.text);
    write_file("main", "include = f*\n");
    for (unsigned i = 0; i < NJ_INI_FILES_MAX; i++) {
        snprintf(next, sizeof next, "f%u", i);
        write_file(next, "");
    }
    read_main();
    cr_expect(faults.n == 2 && strstr(faults.text, "at most 128 files"), "%s", faults.text);
}
