// FilesController: opening files (runs, schedules, building blocks; traces and lessons go to their features), the
// recent ones, saving a copy, closing, and the page that a window without a run shows.
#pragma once

#include <optional>
#include <vector>

#include <QByteArray>
#include <QStringList>

#include "app/ui/workspace/feature.h"
#include "app/ui/workspace/offers.h"

class QMenu;

namespace stagewright {

class WelcomePage;
struct Error;

class FilesController : public Feature, public FileOpening {
    Q_OBJECT
public:
    explicit FilesController(Workspace& workspace);
    static std::vector<ActionEntry> actionTable();
    FeatureParts parts() override;

    void openFiles(const QStringList& paths) override; // shows the first run of the first file
    void openDropped(QStringList paths) override;
    void closeFile(const QString& path) override;
    void remember(const QString& path) override;
    QStringList recentFiles() const override;
    void openOrder(const Schedule& schedule, const QString& path) override;

private:
    void openAsked();
    void saveCopyAsked();
    void openSchedule(const QString& path);
    void openBlock(const QString& path);
    std::optional<QByteArray> readText(const QString& path);
    void refuseText(const QString& path, qint64 zero);
    void refreshRecent();
    void fileListed(const QString& path, const std::vector<RunRef>& refs);
    void fileFailed(const QString& path, const Error& error);
    void await(const QString& path, bool awaited);

    WelcomePage* m_welcome;
    QStringList m_openFirst; // files whose first run is to be shown when listed
};

} // namespace stagewright
