/* SPDX-License-Identifier: BSD-3-Clause */
/* nightjar doctor: its command line. */
#ifndef NJ_APP_DOCTOR_H
#define NJ_APP_DOCTOR_H

/* argv[0] is "doctor". Returns the exit status. */
int nj_app_doctor(int argc, char **argv);

#endif
