/* SPDX-License-Identifier: BSD-3-Clause */
/* Media types: built-in, and from a mime.types file. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "http/files/mime_type.h"

static struct nj_str type_of(const struct nj_mime_options *o, const char *name)
{
    return nj_mime_type(o, (struct nj_str){name, (uint32_t)strlen(name)});
}

static void expect_with(const struct nj_mime_options *o, const char *name, const char *want)
{
    struct nj_str got = type_of(o, name);
    cr_expect(got.n_bytes == strlen(want) && memcmp(got.p, want, got.n_bytes) == 0, "%s: %.*s",
              name, (int)got.n_bytes, got.p);
}

static void expect_type(const char *name, const char *want)
{
    expect_with(&(struct nj_mime_options){0}, name, want);
}

Test(http_mime_type, types)
{
    expect_type("index.html", "text/html");
    expect_type("a/b.HTM", "text/html");
    expect_type("x.css", "text/css");
    expect_type("x.min.js", "text/javascript");
    expect_type("x.json", "application/json");
    expect_type("x.png", "image/png");
    expect_type("x.woff2", "font/woff2");
    expect_type("x.7z", "application/x-7z-compressed");
    expect_type("x.zst", "application/zstd");
    expect_type("noext", "application/octet-stream");
    expect_type("dir.html/noext", "application/octet-stream");
    expect_type("x.", "application/octet-stream");
    expect_type("x.htmlx", "application/octet-stream");
    expect_type("", "application/octet-stream");
    expect_type("/", "application/octet-stream");
    expect_type("html", "application/octet-stream");
    expect_type("x.htm/", "application/octet-stream");
}

/* A row that the search cannot reach would get the default type. */
Test(http_mime_type, table_is_sorted)
{
    static const char *const names[] = {
        "aac",   "apng", "atom", "avif",        "bmp", "bz2",  "c",   "csv",  "deb",  "epub",
        "flac",  "gif",  "gz",   "h",           "ico", "ics",  "jar", "jpeg", "jpg",  "jsonld",
        "jxl",   "log",  "m3u8", "m4a",         "map", "md",   "mjs", "mp3",  "mp4",  "mpd",
        "ogg",   "ogv",  "opus", "otf",         "pdf", "rss",  "rtf", "svg",  "tar",  "tif",
        "tiff",  "ts",   "ttf",  "txt",         "vtt", "wasm", "wav", "webm", "webp", "woff",
        "xhtml", "xml",  "xz",   "webmanifest", "zip", "tgz",  "asc", "toml", "yaml", "yml",
        "svgz",  "rpm",  "docx", "sh",          "123",
    };
    for (size_t i = 0; i < NJ_ARRAY_LEN(names); i++) {
        char name[32];
        snprintf(name, sizeof name, "x.%s", names[i]);
        struct nj_str type = type_of(&(struct nj_mime_options){0}, name);
        cr_expect_neq(strncmp(type.p, "application/octet", 17), 0, "%s", name);
    }
}

static struct nj_mime_table *read_table(const char *text, uint32_t *line, const char **why)
{
    /* An allocation of the exact size, so that a sanitizer sees reads beyond it. */
    char *copy = malloc(strlen(text) + !*text);
    memcpy(copy, text, strlen(text));
    struct nj_mime_table *t = nj_mime_table_parse(copy, strlen(text), line, why);
    free(copy);
    return t;
}

static void expect_of(const struct nj_mime_table *t, const char *name, const char *want)
{
    expect_with(&(struct nj_mime_options){.own = t}, name, want);
}

Test(http_mime_type, file)
{
    uint32_t line;
    const char *why;
    struct nj_mime_table *t = read_table("# a comment\n"
                                         "\n"
                                         "  \t \r\n"
                                         "application/x-nightjar\tnj NJR  njx\r\n"
                                         "text/x-bird bird # bird of the night\n"
                                         "text/x-latin;charset=iso-8859-1 lat\n"
                                         "application/x-none\n"
                                         "image/x-png png\n"
                                         "image/x-first twice\n"
                                         "image/x-second TWICE\n"
                                         "a/b a\n"
                                         "model/mtl tar.gz ab",
                                         &line, &why);
    cr_assert(t, "%u: %s", line, why);
    expect_of(t, "x.nj", "application/x-nightjar");
    expect_of(t, "x.Njr", "application/x-nightjar");
    expect_of(t, "d/x.njx", "application/x-nightjar");
    expect_of(t, "x.njy", "application/octet-stream");
    expect_of(t, "x.bird", "text/x-bird");
    expect_of(t, "x.night", "application/octet-stream");
    expect_of(t, "x.lat", "text/x-latin;charset=iso-8859-1");
    expect_of(t, "x.png", "image/x-png");
    expect_of(t, "x.html", "text/html");
    expect_of(t, "x.twice", "image/x-second");
    expect_of(t, "x.a", "a/b");
    expect_of(t, "x.ab", "model/mtl");
    expect_of(t, "x.gz", "application/gzip");
    nj_mime_table_free(t);

    t = read_table("", &line, &why);
    cr_assert(t);
    expect_of(t, "x.html", "text/html");
    nj_mime_table_free(t);
}

/* A line that grows by the maximum. */
Test(http_mime_type, short_lines)
{
    uint32_t line;
    const char *why;
    char text[7 * 5000 + 1];
    for (int i = 0; i < 5000; i++)
        memcpy(text + 7 * i, "text/a\n", 8);
    struct nj_mime_table *t = read_table(text, &line, &why);
    cr_expect(t);
    nj_mime_table_free(t);
}

Test(http_mime_type, faults)
{
    static const struct {
        const char *text, *why;
        uint32_t line;
    } rows[] = {
        {"html\n", "expected a media type", 1},
        {"text/html html\n\n/html x\n", "expected a media type", 3},
        {"text/ x", "expected a media type", 1},
        {"text/a,b x", "expected a parameter", 1},
        {"text/a;\x01 x", "character in a parameter", 1},
        {"text/html html\ntext/html a/b\n", "character in an extension", 2},
        {"text/html a\x7f"
         "b\n",
         "character in an extension", 1},
    };
    for (size_t i = 0; i < NJ_ARRAY_LEN(rows); i++) {
        uint32_t line;
        const char *why;
        cr_expect_null(read_table(rows[i].text, &line, &why), "%s", rows[i].text);
        cr_expect_eq(line, rows[i].line, "%s: %u", rows[i].text, line);
        cr_expect(strstr(why, rows[i].why), "%s: %s", rows[i].text, why);
    }
}

Test(http_mime_type, is_bounded)
{
    uint32_t line, n = 0;
    const char *why;
    char *text = malloc(NJ_MIME_EXTENSIONS_MAX * 32 + 64);
    for (uint32_t i = 0; i <= NJ_MIME_EXTENSIONS_MAX; i++)
        n += (uint32_t)sprintf(text + n, "a/b %x\n", i);
    cr_expect_null(nj_mime_table_parse(text, n, &line, &why));
    cr_expect_eq(line, NJ_MIME_EXTENSIONS_MAX + 1);
    cr_expect(strstr(why, "too many"));
    memset(text, 'a', 300);
    memcpy(text, "a/", 2);
    cr_expect_null(nj_mime_table_parse(text, 300, &line, &why));
    cr_expect(strstr(why, "too long"));
    free(text);
}

/* As Debian's package media-types has it, except where our table says otherwise. */
Test(http_mime_type, both_tables)
{
    expect_type("x.docx",
                "application/vnd.openxmlformats-officedocument.wordprocessingml.document");
    expect_type("x.RPM", "application/x-redhat-package-manager");
    expect_type("x.ts", "video/mp2t");
    expect_type("x.tgz", "application/gzip");
    expect_type("x.asc", "application/pgp-signature");
    expect_type("x.toml", "application/toml");
    expect_type("x.yaml", "application/yaml");
}

/* A charset is added where it was asked for, to text types without parameters. */
Test(http_mime_type, charset)
{
    uint32_t line;
    const char *why;
    struct nj_mime_table *own =
        read_table("text/x-bird bird\nTEXT/X-B bb\ntext/x-latin;charset=latin1 lat\n", &line, &why);
    const struct nj_mime_options utf8 = {.own = own, .is_utf8 = true, .default_type = "text/none"},
                                 plain = {.own = own};

    cr_assert(own);
    expect_with(&utf8, "x.html", "text/html; charset=utf-8");
    expect_with(&utf8, "x.css", "text/css; charset=utf-8");
    expect_with(&utf8, "x.bird", "text/x-bird; charset=utf-8");
    expect_with(&utf8, "x.bb", "TEXT/X-B; charset=utf-8");
    expect_with(&utf8, "x.lat", "text/x-latin;charset=latin1");
    expect_with(&utf8, "x.json", "application/json");
    expect_with(&utf8, "x.svg", "image/svg+xml");
    expect_with(&utf8, "x.xyzzy", "text/none");
    expect_with(&utf8, "README", "text/none");
    expect_with(&plain, "x.bird", "text/x-bird");
    expect_with(&plain, "x.lat", "text/x-latin;charset=latin1");
    expect_with(&plain, "x.txt", "text/plain");
    nj_mime_table_free(own);
}

Test(http_mime_type, gzip)
{
    const struct nj_str svg = NJ_STR("image/svg+xml");

    cr_expect(nj_mime_is_gzip(NJ_STR("a/x.svgz"), svg) && nj_mime_is_gzip(NJ_STR(".SvgZ"), svg));
    cr_expect_not(nj_mime_is_gzip(NJ_STR("x.svg"), svg) || nj_mime_is_gzip(NJ_STR("svgz"), svg));
    cr_expect_not(nj_mime_is_gzip(NJ_STR("x.svgz"), NJ_STR("application/gzip")));
}
