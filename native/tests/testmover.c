/* For tests alone: the mover by itself, so that it can be built with sanitizers. */
#include "../mover/mover.h"

const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "detect_leaks=0:abort_on_error=1"; } /* it may not be traced, which a search for leaks needs */

int main(void) { return mover_main(); }
