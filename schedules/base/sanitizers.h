// Which sanitizers this build has, for code that announces what they can't see. GCC and clang say it in ways of their
// own.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define STAGEWRIGHT_ADDRESS_SANITIZER
#endif
#if defined(__SANITIZE_THREAD__)
#define STAGEWRIGHT_THREAD_SANITIZER
#endif
#if defined(__clang__)
#if __has_feature(address_sanitizer)
#define STAGEWRIGHT_ADDRESS_SANITIZER
#endif
#if __has_feature(thread_sanitizer)
#define STAGEWRIGHT_THREAD_SANITIZER
#endif
#endif
