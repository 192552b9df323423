/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks up media types by extension (RFC 6838): in the table of the operator, then in the built-in
 * one. */
#include "http/files/mime_type.h"

#include <string.h>

#include "http/files/mime_types_file.h"

static struct nj_str extension_of(struct nj_str name)
{
    uint32_t at = name.n_bytes;

    while (at > 0 && name.p[at - 1] != '.' && name.p[at - 1] != '/')
        at--;
    bool has_dot = at > 0 && name.p[at - 1] == '.';
    return has_dot ? (struct nj_str){name.p + at, name.n_bytes - at} : (struct nj_str){"", 0};
}

struct nj_str nj_mime_type(const struct nj_mime_options *o, struct nj_str name)
{
    struct nj_str ext = extension_of(name);
    const struct nj__mime_row *row = NULL;

    if (o->own)
        row = nj__mime_find(o->own->rows, o->own->n, ext);
    if (!row)
        row = nj__mime_find(nj__mime_builtin, nj__n_mime_builtin, ext);
    if (row) {
        bool has_charset = o->is_utf8 && row->may_have_charset;
        uint32_t n_charset = has_charset ? sizeof NJ__MIME_CHARSET - 1 : 0;
        return (struct nj_str){row->type.p, row->type.n_bytes + n_charset};
    }
    if (o->default_type)
        return (struct nj_str){o->default_type, (uint32_t)strlen(o->default_type)};
    return NJ_STR("application/octet-stream");
}

bool nj_mime_is_gzip(struct nj_str name, struct nj_str type)
{
    return nj_str_eq_nocase_cstr(extension_of(name), "svgz") &&
           nj_str_eq_nocase_cstr(type, "image/svg+xml");
}
