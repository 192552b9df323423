/* SPDX-License-Identifier: BSD-3-Clause */
#include "mgmt/telemetry_document.h"

#include <jansson.h>
#include <rte_telemetry.h>

#include "dpdk/compat.h"

/* Values of a dictionary, except dictionaries. */
static void add_value(const char *name, const json_t *value, struct rte_tel_data *to)
{
    if (json_is_integer(value)) {
        json_int_t n = json_integer_value(value);
        if (n < 0)
            rte_tel_data_add_dict_int(to, name, (int)n);
        else
            rte_tel_data_add_dict_uint(to, name, (uint64_t)n);
    } else if (json_is_string(value)) {
        rte_tel_data_add_dict_string(to, name, json_string_value(value));
    } else if (json_is_boolean(value)) {
        rte_tel_data_add_dict_string(to, name, json_is_true(value) ? "yes" : "no");
    }
}

/* A dictionary whose values are no dictionaries. */
static void add_dict(const char *name, json_t *from, struct rte_tel_data *to)
{
    struct rte_tel_data *one = rte_tel_data_alloc();
    const char *key;
    json_t *value;

    if (!one)
        return;
    rte_tel_data_start_dict(one);
    json_object_foreach(from, key, value) add_value(key, value, one);
    if (rte_tel_data_add_dict_container(to, name, one, 0) != 0)
        rte_tel_data_free(one);
}

void nj__document_to_telemetry(const struct nj__document *doc, struct rte_tel_data *to)
{
    const char *key;
    json_t *value;
    size_t i;

    if (doc->form == NJ__DOCUMENT_TELEMETRY_LIST) {
        rte_tel_data_start_array(to, RTE_TEL_STRING_VAL);
        json_array_foreach(doc->root, i, value)
            rte_tel_data_add_array_string(to, json_string_value(value));
        return;
    }
    rte_tel_data_start_dict(to);
    json_object_foreach(doc->root, key, value)
    {
        if (json_is_object(value))
            add_dict(key, value, to);
        else
            add_value(key, value, to);
    }
}
