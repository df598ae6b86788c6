// What the portable program needs that is linked entirely statically (scripts/package). It does nothing in any other.
#pragma once

// Takes back the change of the environment that was needed before main began. Call it first in main.
void segdl_restore_environment(void);
