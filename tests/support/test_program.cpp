#include "support/test_program.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#ifdef QT_WIDGETS_LIB
#include <QApplication>
#endif

namespace stagewright::tests {

namespace {

std::vector<TestEntry>& entries()
{
    static std::vector<TestEntry> all;
    return all;
}

std::string_view nameOf(const TestEntry& entry)
{
    std::string_view file = entry.file;
    file.remove_prefix(file.rfind('/') + 1);
    return file.substr(0, file.rfind('.'));
}

std::unique_ptr<QCoreApplication> makeApplication(bool withoutWindow, int& argc, char** argv)
{
#ifdef QT_WIDGETS_LIB
    if (!withoutWindow) {
        auto application = std::make_unique<QApplication>(argc, argv);
        QCoreApplication::setAttribute(Qt::AA_Use96Dpi, true);
        return application;
    }
#else
    (void)withoutWindow;
#endif
    return std::make_unique<QCoreApplication>(argc, argv);
}

int listTests(const char* program)
{
    std::vector<std::string_view> names;
    for (const TestEntry& entry : entries()) names.push_back(nameOf(entry));
    std::sort(names.begin(), names.end());
    std::fprintf(stderr, "usage: %s TEST [QTest's arguments]; the tests are\n", program);
    for (const std::string_view name : names)
        std::fprintf(stderr, "  %.*s\n", static_cast<int>(name.size()), name.data());
    return 2;
}

} // namespace

bool addTest(const TestEntry& entry)
{
    entries().push_back(entry);
    return true;
}

int runTest(int argc, char** argv)
{
    const auto& all = entries();
    const auto found = argc < 2 ? all.end() : std::find_if(all.begin(), all.end(), [&](const TestEntry& entry) {
        return nameOf(entry) == argv[1];
    });
    if (found == all.end()) return listTests(argv[0]);
    found->beforeApplication();
    std::vector<char*> arguments{argv[0]};
    arguments.insert(arguments.end(), argv + 2, argv + argc);
    arguments.push_back(nullptr);
    int count = argc - 1;
    const auto application = makeApplication(found->withoutWindow, count, arguments.data());
    QCoreApplication::setApplicationName(QString::fromLatin1(argv[1]));
    return found->run(count, arguments.data());
}

} // namespace stagewright::tests

int main(int argc, char** argv) { return stagewright::tests::runTest(argc, argv); }
