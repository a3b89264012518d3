/* SPDX-License-Identifier: MIT
 *
 * Whether the machine lives on its battery. Any thread.
 */
#ifndef APP_POWER_H
#define APP_POWER_H

#include <stdbool.h>

/* As Linux tells in /sys/class/power_supply: a system battery that discharges. False where nothing
 * is known. */
bool app_on_battery(void);

#endif
