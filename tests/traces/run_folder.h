// A folder of new run files for tests, and results that must be there.
#pragma once

#include <memory>
#include <string>

#include <QtTest/QtTest>

#include "sample_runs.h"
#include "traces/store/run_file.h"

#define VERIFY_RESULT(...)                                                                                             \
    do {                                                                                                               \
        const auto& verified = (__VA_ARGS__); /* once: it may write */                                                 \
        QVERIFY2(verified.has_value(),                                                                                 \
                 verified.has_value() ? "" : (verified.error().message + " | " + verified.error().remedy).c_str());    \
    } while (false)

namespace stagewright {

class RunFolder {
public:
    std::string freshPath() { return m_folder.filePath(QString("file%1.stagewright").arg(++m_files)).toStdString(); }

    // None if it can't be created.
    std::unique_ptr<RunFile> fresh()
    {
        auto file = RunFile::open(freshPath(), OpenMode::Create);
        return file ? std::move(*file) : nullptr;
    }

private:
    QTemporaryDir m_folder;
    int m_files = 0;
};

} // namespace stagewright
