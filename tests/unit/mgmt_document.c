/* SPDX-License-Identifier: BSD-3-Clause */
/* Documents: what JSON and what telemetry has of the same calls; texts that are no UTF-8; lack of
 * memory. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "mgmt/document.h"

/* Values of each kind. */
static void fill(struct nj__doc d)
{
    nj__doc_uint(d, "n", 7);
    nj__doc_int(d, "node", -1);
    nj__doc_bool(d, "others", true);
    nj__doc_text(d, "name", "net_tap");
    nj__doc_uint(nj__doc_dict(d, "ttfb"), "count", 2);
    struct nj__doc list = nj__doc_list(d, "classes", "class");
    nj__doc_uint(nj__doc_item(list, 0), "bytes", 1);
    nj__doc_uint(nj__doc_item(list, 3), "bytes", 2);
    struct nj__doc named = nj__doc_list(d, "limits", "class_");
    nj__doc_text(nj__doc_named_item(named, "video"), "rate", "5MiB/s");
    struct nj__doc texts = nj__doc_list(d, "shards", "shard");
    nj__doc_item_text(texts, 0, "either");
    struct nj__doc only = nj__doc_only_item(nj__doc_list(d, "ports", "port"), 4);
    nj__doc_uint(only, "mtu", 1500);
}

static void expect(enum nj__document_form form, const char *expected)
{
    struct nj__document doc;

    fill(nj__document_begin(&doc, form));
    char *text = json_dumps(doc.root, JSON_COMPACT);
    cr_expect_str_eq(text, expected);
    cr_expect(!doc.is_incomplete);
    free(text);
    nj__document_end(&doc);
}

Test(mgmt_document, json_has_lists)
{
    expect(NJ__DOCUMENT_JSON,
           "{\"n\":7,\"node\":-1,\"others\":true,\"name\":\"net_tap\",\"ttfb\":{\"count\":2},"
           "\"classes\":[{\"number\":0,\"bytes\":1},{\"number\":3,\"bytes\":2}],"
           "\"limits\":[{\"name\":\"video\",\"rate\":\"5MiB/s\"}],\"shards\":[\"either\"],"
           "\"ports\":[{\"number\":4,\"mtu\":1500}]}");
}

Test(mgmt_document, telemetry_has_members_in_the_dictionary)
{
    expect(NJ__DOCUMENT_TELEMETRY,
           "{\"n\":7,\"node\":-1,\"others\":true,\"name\":\"net_tap\",\"ttfb\":{\"count\":2},"
           "\"class0\":{\"bytes\":1},\"class3\":{\"bytes\":2},"
           "\"class_video\":{\"rate\":\"5MiB/s\"},\"shard0\":\"either\",\"mtu\":1500}");
}

Test(mgmt_document, a_list_of_telemetry)
{
    struct nj__document doc;
    struct nj__doc root = nj__document_begin(&doc, NJ__DOCUMENT_TELEMETRY_LIST);

    nj__doc_item_text(nj__doc_list(root, "addresses", "address"), 0, "198.18.0.2/24 ready");
    cr_expect_eq(json_array_size(doc.root), 1);
    cr_expect_str_eq(json_string_value(json_array_get(doc.root, 0)), "198.18.0.2/24 ready");
    nj__document_end(&doc);
}

static void expect_text(const char *text, const char *expected)
{
    struct nj__document doc;

    nj__doc_text(nj__document_begin(&doc, NJ__DOCUMENT_JSON), "text", text);
    cr_expect_str_eq(json_string_value(json_object_get(doc.root, "text")), expected);
    cr_expect(!doc.is_incomplete);
    nj__document_end(&doc);
}

Test(mgmt_document, texts_become_utf8)
{
    expect_text("", "");
    expect_text("gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f");
    expect_text("gr\xfc\xdf", "gr\xc3\xbc\xc3\x9f");         /* ISO 8859-1 */
    expect_text("a\xc3", "a\xc3\x83");                       /* cut short */
    expect_text("\xed\xa0\x80", "\xc3\xad\xc2\xa0\xc2\x80"); /* a surrogate */
    expect_text("\x80\xff", "\xc2\x80\xc3\xbf");
    expect_text("\"\\\n\x01", "\"\\\n\x01"); /* json_dumps() escapes them */
}

Test(mgmt_document, numbers_are_integers_of_json)
{
    struct nj__document doc;
    struct nj__doc root = nj__document_begin(&doc, NJ__DOCUMENT_JSON);

    nj__doc_uint(root, "max", UINT64_MAX);
    nj__doc_uint(root, "int", INT64_MAX);
    nj__doc_int(root, "min", INT64_MIN);
    cr_expect_eq(json_integer_value(json_object_get(doc.root, "max")), INT64_MAX);
    cr_expect_eq(json_integer_value(json_object_get(doc.root, "int")), INT64_MAX);
    cr_expect_eq(json_integer_value(json_object_get(doc.root, "min")), INT64_MIN);
    nj__document_end(&doc);
}

/* --- lack of memory ------------------------------------------------------------------------- */

static long n_left; /* allocations until one fails */

static void *fail_later(size_t n)
{
    return n_left-- > 0 ? malloc(n) : NULL;
}

Test(mgmt_document, lack_of_memory_is_noted)
{
    struct nj__document doc = {.is_incomplete = true};
    long n = 0;

    json_set_alloc_funcs(fail_later, free);
    for (; doc.is_incomplete; n++) {
        cr_assert_lt(n, 1000);
        n_left = n;
        fill(nj__document_begin(&doc, n % 2 ? NJ__DOCUMENT_JSON : NJ__DOCUMENT_TELEMETRY));
        cr_expect(doc.is_incomplete || n_left >= 0);
        nj__document_end(&doc);
    }
    cr_expect_gt(n, 20);
}
