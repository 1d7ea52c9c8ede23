// The import dialog's file dialogs.
#include <QDir>
#include <QFileDialog>
#include <QFileInfo>
#include <QLineEdit>
#include <QSettings>

#include "widgets/import/import_dialog.h"
#include "widgets/preferences/preferences.h"

namespace stagewright {

QString ImportDialog::folder() const
{
    const QStringList words = question().words;
    if (!words.isEmpty()) return QFileInfo(words.last()).absolutePath();
    const QString last = QSettings().value(QStringLiteral("import/folder")).toString();
    return QFileInfo(last).isDir() ? last : PreferenceStore::instance().value().folder;
}

void ImportDialog::addWords(const QStringList& words)
{
    if (words.isEmpty()) return;
    QSettings().setValue(QStringLiteral("import/folder"), QFileInfo(words.first()).absolutePath());
    QStringList all = question().words;
    for (const QString& word : words)
        if (!all.contains(word)) all << word;
    setTraces(all);
}

void ImportDialog::chooseFiles()
{
    auto* dialog = new QFileDialog(
        this, tr("Choose traces"), folder(),
        tr("Traces and schedules (*.json *.json.gz *.gz *.sqlite *.csv *.zip *.tar *.tgz *.zst *.xz);;All files (*)"));
    dialog->setObjectName(QStringLiteral("chooseTraces"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setFileMode(QFileDialog::ExistingFiles);
    connect(dialog, &QFileDialog::filesSelected, this, &ImportDialog::addWords);
    dialog->open();
}

void ImportDialog::chooseFolder()
{
    auto* dialog = new QFileDialog(this, tr("Choose a folder of traces"), folder());
    dialog->setObjectName(QStringLiteral("chooseTraceFolder"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setFileMode(QFileDialog::Directory);
    dialog->setOption(QFileDialog::ShowDirsOnly);
    connect(dialog, &QFileDialog::filesSelected, this, &ImportDialog::addWords);
    dialog->open();
}

void ImportDialog::chooseRules()
{
    const QString now = m_rules->text().trimmed();
    auto* dialog = new QFileDialog(this, tr("Choose rules"), now.isEmpty() ? folder() : QFileInfo(now).absolutePath(),
                                   tr("Rules (*.txt *.rules);;All files (*)"));
    dialog->setObjectName(QStringLiteral("chooseRules"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setFileMode(QFileDialog::ExistingFile);
    connect(dialog, &QFileDialog::fileSelected, this, &ImportDialog::setRulesFile);
    dialog->open();
}

void ImportDialog::chooseTarget()
{
    auto* dialog = new QFileDialog(this, tr("Store the runs in"), QFileInfo(target()).absolutePath(),
                                   tr("Run files (*.stagewright)"));
    dialog->setObjectName(QStringLiteral("chooseTarget"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setAcceptMode(QFileDialog::AcceptSave);
    dialog->setOption(QFileDialog::DontConfirmOverwrite); // runs are added
    dialog->setDefaultSuffix(QStringLiteral("stagewright"));
    dialog->selectFile(QFileInfo(target()).fileName());
    connect(dialog, &QFileDialog::fileSelected, this, &ImportDialog::setTarget);
    dialog->open();
}

} // namespace stagewright
