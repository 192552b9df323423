/* SPDX-License-Identifier: BSD-3-Clause */
#include "mgmt/document.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/json_escape_utf8.h"

#define NAME_BYTES 128 /* of a name in telemetry */

void nj__documents_init(void)
{
    size_t seed = 0; /* jansson makes one then */

    (void)!getrandom(&seed, sizeof seed, GRND_NONBLOCK);
    json_object_seed(seed);
}

struct nj__doc nj__document_begin(struct nj__document *doc, enum nj__document_form form)
{
    *doc = (struct nj__document){.form = form};
    doc->root = form == NJ__DOCUMENT_TELEMETRY_LIST ? json_array() : json_object();
    doc->is_incomplete = !doc->root;
    return (struct nj__doc){.of = doc, .at = doc->root};
}

void nj__document_end(struct nj__document *doc)
{
    json_decref(doc->root);
    doc->root = NULL;
}

/* Notes whether an addition to `d` failed. Returns what was added, borrowed from the document. */
static json_t *added(struct nj__doc d, json_t *value, int status)
{
    if (status == 0)
        return value;
    d.of->is_incomplete = true;
    return NULL;
}

/* Both consume the value. jansson refuses additions to NULL, and of NULL. */
static json_t *set(struct nj__doc d, const char *name, json_t *value)
{
    return added(d, value, json_object_set_new(d.at, name, value));
}

static json_t *append(struct nj__doc list, json_t *value)
{
    return added(list, value, json_array_append_new(list.at, value));
}

/* --- dictionaries --------------------------------------------------------------------------- */

void nj__doc_uint(struct nj__doc d, const char *name, uint64_t value)
{
    set(d, name, json_integer(value > INT64_MAX ? INT64_MAX : (json_int_t)value));
}

void nj__doc_int(struct nj__doc d, const char *name, int64_t value)
{
    set(d, name, json_integer(value));
}

/* A text of UTF-8: each byte of `text` that is none becomes U+0080 to U+00FF. */
static json_t *repaired(const char *text)
{
    struct nj_str s = {text, (uint32_t)strlen(text)};
    char *out = malloc(2 * (size_t)s.n_bytes + 1);
    size_t n = 0;

    if (!out)
        return NULL;
    while (s.n_bytes > 0) {
        const char *from = s.p;
        if (nj_utf8_next(&s) == NJ_UTF8_INVALID) {
            out[n++] = (char)(0xc0 | (uint8_t)*from >> 6);
            out[n++] = (char)(0x80 | ((uint8_t)*from & 0x3f));
        } else {
            memcpy(out + n, from, (size_t)(s.p - from));
            n += (size_t)(s.p - from);
        }
    }
    json_t *value = json_stringn(out, n);
    free(out);
    return value;
}

static json_t *text_value(const char *text)
{
    json_t *value = json_string(text);

    return value ? value : repaired(text);
}

void nj__doc_text(struct nj__doc d, const char *name, const char *text)
{
    set(d, name, text_value(text));
}

void nj__doc_bool(struct nj__doc d, const char *name, bool value)
{
    set(d, name, json_boolean(value));
}

struct nj__doc nj__doc_dict(struct nj__doc d, const char *name)
{
    return (struct nj__doc){.of = d.of, .at = set(d, name, json_object())};
}

/* --- lists ---------------------------------------------------------------------------------- */

struct nj__doc nj__doc_list(struct nj__doc d, const char *name, const char *member)
{
    json_t *at = nj__doc_is_telemetry(d) ? d.at : set(d, name, json_array());

    return (struct nj__doc){.of = d.of, .at = at, .member = member};
}

/* A dictionary, under that name if telemetry has the list. */
static struct nj__doc add_item(struct nj__doc list, const char *name)
{
    json_t *at =
        nj__doc_is_telemetry(list) ? set(list, name, json_object()) : append(list, json_object());

    return (struct nj__doc){.of = list.of, .at = at};
}

struct nj__doc nj__doc_item(struct nj__doc list, uint32_t number)
{
    char name[NAME_BYTES];

    snprintf(name, sizeof name, "%s%" PRIu32, list.member, number);
    struct nj__doc one = add_item(list, name);
    if (!nj__doc_is_telemetry(list))
        nj__doc_uint(one, "number", number);
    return one;
}

struct nj__doc nj__doc_named_item(struct nj__doc list, const char *name)
{
    char whole[NAME_BYTES];

    snprintf(whole, sizeof whole, "%s%s", list.member, name);
    struct nj__doc one = add_item(list, whole);
    if (!nj__doc_is_telemetry(list))
        nj__doc_text(one, "name", name);
    return one;
}

struct nj__doc nj__doc_only_item(struct nj__doc list, uint32_t number)
{
    return nj__doc_is_telemetry(list) ? list : nj__doc_item(list, number);
}

void nj__doc_item_text(struct nj__doc list, uint32_t number, const char *text)
{
    char name[NAME_BYTES];

    snprintf(name, sizeof name, "%s%" PRIu32, list.member, number);
    if (list.of->form == NJ__DOCUMENT_TELEMETRY)
        nj__doc_text(list, name, text);
    else
        append(list, text_value(text));
}
