// The cases of a file of tests/data/tiers, or of the folder that STAGEWRIGHT_CASES names; empty: it has no such file.
#pragma once

#include <QDir>
#include <QFile>
#include <nlohmann/json.hpp>

namespace stagewright::testing {

inline nlohmann::json tierCases(const char* name)
{
    const QString other = qEnvironmentVariable("STAGEWRIGHT_CASES");
    QDir folder(other.isEmpty() ? QStringLiteral(STAGEWRIGHT_SOURCE_DIR "/tests/data/tiers") : other);
    if (!other.isEmpty() && folder.exists("tiers")) folder.cd("tiers");
    QFile file(folder.filePath(name));
    if (!file.open(QIODevice::ReadOnly)) return nlohmann::json::array();
    return nlohmann::json::parse(file.readAll().toStdString()).value("cases", nlohmann::json::array());
}

} // namespace stagewright::testing
