/* SPDX-License-Identifier: BSD-3-Clause */
/* The forms that nj-option-docs writes to standard output, from the tables of options. */
#pragma once

/* roff_docs.c: man/nightjar.1, man/nightjar.conf.5, man/nightjar-ctl.1 and man/nightjar-load.1
 * (man(7)). */
void write_man(void);
void write_ctl_man(void);
void write_conf_man(void);
void write_load_man(void);

/* completion_docs.c: completions of the options of both programs, for bash and for zsh. */
void write_bash(void);
void write_load_bash(void);
void write_zsh(void);
void write_load_zsh(void);
