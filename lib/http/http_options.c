/* SPDX-License-Identifier: BSD-3-Clause */
/* Default options of HTTP. */
#include "http/http_options.h"

#include "base/limits.h"

const struct nj_http_options nj_http_options_default = {
    .header_bytes_max = NJ_REQUEST_HEAD_BYTES,
    .header_fields_max = NJ_REQUEST_FIELDS_MAX,
    .preface_timeout = 10 * NJ_SEC,
    .idle_timeout = 75 * NJ_SEC,
    .header_timeout = 10 * NJ_SEC,
    .body_timeout = 60 * NJ_SEC,
    .send_timeout = 60 * NJ_SEC,
    .min_upload_rate = NJ_MIN_UPLOAD_RATE,
    .body_deadline = NJ_BODY_DEADLINE_S * (nj_ns)NJ_SEC,
};
