/* For tests alone: how the cell behaves when it is built with sanitizers. It gets no environment that could say so. */
const char *__asan_default_options(void);
const char *__ubsan_default_options(void);
const char *__asan_default_options(void) { return "detect_leaks=0:abort_on_error=1"; } /* a child ends when it has answered, with all it holds */
const char *__ubsan_default_options(void) { return "abort_on_error=1:print_stacktrace=1"; }
