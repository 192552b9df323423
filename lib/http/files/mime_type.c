/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks up media types in a built-in table sorted by extension, with a binary search. Types are
 * those registered by RFC 6838 or in common use. */
#include "http/files/mime_type.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/compiler.h"
#include "http/files/mime_types_file.h"

struct row {
    const char *ext;
    struct nj_str type;
};

#define TEXT(sub) NJ_STR_INIT("text/" sub "; charset=utf-8")

/* Must stay sorted; the unit test finds every row through the search. */
/* clang-format off */
static const struct row rows[] = {
    {"7z",          NJ_STR_INIT("application/x-7z-compressed")},
    {"aac",         NJ_STR_INIT("audio/aac")},
    {"apng",        NJ_STR_INIT("image/apng")},
    {"atom",        NJ_STR_INIT("application/atom+xml")},
    {"avif",        NJ_STR_INIT("image/avif")},
    {"bin",         NJ_STR_INIT("application/octet-stream")},
    {"bmp",         NJ_STR_INIT("image/bmp")},
    {"bz2",         NJ_STR_INIT("application/x-bzip2")},
    {"c",           TEXT("plain")},
    {"css",         TEXT("css")},
    {"csv",         TEXT("csv")},
    {"deb",         NJ_STR_INIT("application/vnd.debian.binary-package")},
    {"epub",        NJ_STR_INIT("application/epub+zip")},
    {"flac",        NJ_STR_INIT("audio/flac")},
    {"gif",         NJ_STR_INIT("image/gif")},
    {"gz",          NJ_STR_INIT("application/gzip")},
    {"h",           TEXT("plain")},
    {"htm",         TEXT("html")},
    {"html",        TEXT("html")},
    {"ico",         NJ_STR_INIT("image/vnd.microsoft.icon")},
    {"ics",         TEXT("calendar")},
    {"iso",         NJ_STR_INIT("application/octet-stream")},
    {"jar",         NJ_STR_INIT("application/java-archive")},
    {"jpeg",        NJ_STR_INIT("image/jpeg")},
    {"jpg",         NJ_STR_INIT("image/jpeg")},
    {"js",          TEXT("javascript")},
    {"json",        NJ_STR_INIT("application/json")},
    {"jsonld",      NJ_STR_INIT("application/ld+json")},
    {"jxl",         NJ_STR_INIT("image/jxl")},
    {"log",         TEXT("plain")},
    {"m3u8",        NJ_STR_INIT("application/vnd.apple.mpegurl")},
    {"m4a",         NJ_STR_INIT("audio/mp4")},
    {"map",         NJ_STR_INIT("application/json")},
    {"md",          TEXT("markdown")},
    {"mjs",         TEXT("javascript")},
    {"mp3",         NJ_STR_INIT("audio/mpeg")},
    {"mp4",         NJ_STR_INIT("video/mp4")},
    {"mpd",         NJ_STR_INIT("application/dash+xml")},
    {"ogg",         NJ_STR_INIT("audio/ogg")},
    {"ogv",         NJ_STR_INIT("video/ogg")},
    {"opus",        NJ_STR_INIT("audio/ogg")},
    {"otf",         NJ_STR_INIT("font/otf")},
    {"pdf",         NJ_STR_INIT("application/pdf")},
    {"png",         NJ_STR_INIT("image/png")},
    {"rss",         NJ_STR_INIT("application/rss+xml")},
    {"rtf",         NJ_STR_INIT("application/rtf")},
    {"svg",         NJ_STR_INIT("image/svg+xml")},
    {"tar",         NJ_STR_INIT("application/x-tar")},
    {"tif",         NJ_STR_INIT("image/tiff")},
    {"tiff",        NJ_STR_INIT("image/tiff")},
    {"ts",          NJ_STR_INIT("video/mp2t")},
    {"ttf",         NJ_STR_INIT("font/ttf")},
    {"txt",         TEXT("plain")},
    {"vtt",         TEXT("vtt")},
    {"wasm",        NJ_STR_INIT("application/wasm")},
    {"wav",         NJ_STR_INIT("audio/wav")},
    {"webm",        NJ_STR_INIT("video/webm")},
    {"webmanifest", NJ_STR_INIT("application/manifest+json")},
    {"webp",        NJ_STR_INIT("image/webp")},
    {"woff",        NJ_STR_INIT("font/woff")},
    {"woff2",       NJ_STR_INIT("font/woff2")},
    {"xhtml",       NJ_STR_INIT("application/xhtml+xml")},
    {"xml",         TEXT("xml")},
    {"xz",          NJ_STR_INIT("application/x-xz")},
    {"zip",         NJ_STR_INIT("application/zip")},
    {"zst",         NJ_STR_INIT("application/zstd")},
};
/* clang-format on */

/* The table's extension is terminated, the one looked for is not. */
static int compare(struct nj_str ext, const char *row)
{
    int order = nj_strncasecmp(ext.p, row, ext.n_bytes);
    return order ? order : -(row[ext.n_bytes] != '\0');
}

static bool extension_of(struct nj_str name, struct nj_str *ext)
{
    uint32_t at = name.n_bytes;

    while (at > 0 && name.p[at - 1] != '.' && name.p[at - 1] != '/')
        at--;
    *ext = (struct nj_str){name.p + at, name.n_bytes - at};
    return at > 0 && name.p[at - 1] == '.' && ext->n_bytes > 0;
}

struct nj_str nj_mime_type(const struct nj_mime_table *own, struct nj_str name)
{
    struct nj_str ext, type;

    if (!extension_of(name, &ext))
        return NJ_STR("application/octet-stream");
    if (own && nj__mime_table_find(own, ext, &type))
        return type;
    for (size_t lo = 0, hi = NJ_ARRAY_LEN(rows); lo < hi;) {
        size_t mid = lo + (hi - lo) / 2;
        int order = compare(ext, rows[mid].ext);
        if (order == 0)
            return rows[mid].type;
        if (order < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return NJ_STR("application/octet-stream");
}
