/* SPDX-License-Identifier: BSD-3-Clause */
/* Content types (RFC 8446 B.1) and the alerts (RFC 8446 6, B.2) of TLS 1.3 that
 * are sent or read by name; the others are numbers of OpenSSL. */
#pragma once

enum nj_tls_content_type {
    NJ_TLS_CHANGE_CIPHER_SPEC = 20,
    NJ_TLS_ALERT = 21,
    NJ_TLS_HANDSHAKE = 22,
    NJ_TLS_APPLICATION_DATA = 23,
};

enum nj_tls_alert_level {
    NJ_TLS_LEVEL_WARNING = 1,
    NJ_TLS_LEVEL_FATAL = 2,
};

enum nj_tls_alert {
    NJ_TLS_CLOSE_NOTIFY = 0,
    NJ_TLS_UNEXPECTED_MESSAGE = 10,
    NJ_TLS_BAD_RECORD_MAC = 20,
    NJ_TLS_RECORD_OVERFLOW = 22,
    NJ_TLS_ILLEGAL_PARAMETER = 47,
    NJ_TLS_DECODE_ERROR = 50,
    NJ_TLS_INTERNAL_ERROR = 80,
    NJ_TLS_USER_CANCELED = 90,
};
