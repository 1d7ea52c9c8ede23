// What tests compare to verify that nothing was left behind: files of a folder, threads of the process.
#pragma once

#include <filesystem>

#include <QByteArray>
#include <QDirIterator>
#include <QFile>
#include <QMap>
#include <QString>

// Every file below the folder, hidden ones too, by path from it; folders have a name that ends in a slash.
inline QMap<QString, QByteArray> contentOf(const QString& folder)
{
    QMap<QString, QByteArray> content;
    QDirIterator each(folder, QDir::AllEntries | QDir::Hidden | QDir::System | QDir::NoDotAndDotDot,
                      QDirIterator::Subdirectories);
    while (each.hasNext()) {
        const QString path = each.next();
        const QString name = QDir(folder).relativeFilePath(path);
        if (each.fileInfo().isDir()) {
            content.insert(name + QLatin1Char('/'), {});
            continue;
        }
        QFile file(path);
        content.insert(name, file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArrayLiteral("unreadable"));
    }
    return content;
}

inline std::ptrdiff_t threadsOfThisProcess()
{
    std::error_code none;
    return std::distance(std::filesystem::directory_iterator("/proc/self/task", none),
                         std::filesystem::directory_iterator());
}
