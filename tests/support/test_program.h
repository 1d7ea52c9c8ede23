// Every test class of a room is in one program, "tests_<room> tst_name [QTest's arguments]". This header is included
// before each test's source, and makes the QTEST_MAIN at its end an entry of that program.
#pragma once

#include <QtTest>

namespace stagewright::tests {

struct TestEntry {
    const char* file; // __FILE__ of the test: its name is the file's
    bool withoutWindow;
    void (*beforeApplication)();
    int (*run)(int argc, char** argv);
};

// True, so that a static variable can hold the call.
bool addTest(const TestEntry& entry);
// argv: the program, a test's name, its arguments. 2 and a list if there is no such test.
int runTest(int argc, char** argv);

template <typename Test>
bool addTest(const char* file, bool withoutWindow)
{
    return addTest({file, withoutWindow, &QTest::Internal::callInitMain<Test>, [](int argc, char** argv) {
                        Test test;
                        return QTest::qExec(&test, argc, argv);
                    }});
}

} // namespace stagewright::tests

#undef QTEST_MAIN
#undef QTEST_GUILESS_MAIN
#undef QTEST_APPLESS_MAIN
#define STAGEWRIGHT_TEST_ENTRY(Test, withoutWindow)                                                                    \
    [[maybe_unused]] static const bool isEntryOfTheProgram##Test =                                                     \
        stagewright::tests::addTest<Test>(__FILE__, withoutWindow);
#define QTEST_MAIN(Test) STAGEWRIGHT_TEST_ENTRY(Test, false)
#define QTEST_GUILESS_MAIN(Test) STAGEWRIGHT_TEST_ENTRY(Test, true)
#define QTEST_APPLESS_MAIN(Test) STAGEWRIGHT_TEST_ENTRY(Test, true)
