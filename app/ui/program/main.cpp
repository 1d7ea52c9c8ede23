// stagewright-ui: the window, or a picture of it.
#include <cstdio>
#include <memory>

#include <QApplication>
#include <QFile>
#include <QFileInfo>
#include <QIcon>
#include <QSettings>
#include <QTemporaryDir>
#include <QTimer>

#include "app/ui/program/command_line.h"
#include "app/ui/program/end_signals.h"
#include "app/ui/program/picture.h"
#include "app/ui/program/showing.h"
#include "app/ui/shell/appearance.h"
#include "app/ui/shell/main_window.h"
#include "app/ui/shell/window_set.h"
#include "app/ui/workspace/offers.h"
#include "app/ui/workspace/workspace.h"
#include "app/version/version.h"
#include "schedules/base/standard_streams.h"
#include "widgets/literals.h"

using namespace stagewright;

namespace {

void openAsked(MainWindow& window, const CommandLine& line)
{
    if (line.files.isEmpty()) WindowSet::instance().restore(window);
    showAsked(window, line);
    if (!line.files.isEmpty() && waitUntil([&] { return window.workspace().settled(); }, 60000)) {
        showPlace(window, line);
        showView(window, line);
    }
    showLesson(window, line);
    const ShowEntry* shown = findShown(line.show);
    if (shown != nullptr && shown->dialog != nullptr) openDialog(window, *shown, line.schedule, false);
}

// The archive brings what a machine without a desktop lacks: the keyboard's tables and a list of places of fonts. Read
// before Qt starts.
void useArchivedData(const char* program)
{
    const QString link = QFile::symLinkTarget(u"/proc/self/exe"_s);
    const QString share =
        QFileInfo(link.isEmpty() ? QString::fromLocal8Bit(program) : link).absolutePath() + u"/../share/stagewright/"_s;
    const auto use = [&](const char* variable, const QString& machines, const QString& archived) {
        if (qEnvironmentVariableIsSet(variable) || QFileInfo::exists(machines) || !QFileInfo::exists(share + archived))
            return;
        qputenv(variable, QFile::encodeName(share + archived));
    };
    use("XKB_CONFIG_ROOT", u"/usr/share/X11/xkb"_s, u"xkb"_s);
    use("FONTCONFIG_FILE", u"/etc/fonts/fonts.conf"_s, u"fonts.conf"_s);
}

} // namespace

int main(int argc, char** argv)
{
    tieStandardStreams();
    QStringList words;
    for (int i = 1; i < argc; ++i) words << QString::fromLocal8Bit(argv[i]);
    const CommandLine line = parseCommandLine(words);
    if (line.help) {
        std::fputs(helpText().toUtf8().constData(), stdout);
        return 0;
    }
    if (line.version) {
        std::printf("stagewright-ui %s\n", versionText().c_str());
        return 0;
    }
    if (!line.fault.isEmpty()) return complain(2, line.fault);

    useArchivedData(argv[0]);
    const bool display = qEnvironmentVariableIsSet("DISPLAY") || qEnvironmentVariableIsSet("WAYLAND_DISPLAY");
    if (!qEnvironmentVariableIsSet("QT_QPA_PLATFORM")) {
        if (line.leaves())
            qputenv("QT_QPA_PLATFORM", "offscreen"); // the same picture with and without a display
        else if (!display)
            return complain(4, u"there is no display"_s,
                            u"use --screenshot OUT.png or --export png -o OUT.png, or the program stagewright"_s);
    }
    QApplication::setApplicationName(u"stagewright"_s);
    QApplication::setOrganizationName(u"stagewright"_s);
    QApplication::setApplicationVersion(QString::fromStdString(std::string(programVersion())));
    if (!line.leaves()) applyTextScale(); // pictures don't depend on saved settings
    QApplication app(argc, argv);
    QGuiApplication::setDesktopFileName(u"org.stagewright.Stagewright"_s);
    QApplication::setWindowIcon(QIcon(u":/stagewright/icon.png"_s));
    const QTemporaryDir nothing; // pictures don't depend on saved settings, and leave nothing behind
    if (line.leaves()) {
        QSettings::setPath(QSettings::NativeFormat, QSettings::UserScope, nothing.path());
        if (!line.lesson.isEmpty()) qputenv("XDG_DATA_HOME", nothing.path().toLocal8Bit()); // nor on lesson progress
    }

    auto* shown = new MainWindow; // windows delete themselves, unless the program exits after drawing
    MainWindow& window = *shown;
    const ThemeChoice choices[] = {ThemeChoice::Light, ThemeChoice::Dark, ThemeChoice::HighContrast};
    if (line.theme || line.leaves())
        Appearance::choose(choices[static_cast<int>(line.theme.value_or(ThemeName::Light))]);
    if (line.leaves()) {
        const std::unique_ptr<MainWindow> drawn(shown);
        return drawAndLeave(window, line);
    }
    window.setAttribute(Qt::WA_DeleteOnClose);
    window.show();
    WindowSet::instance().keepSession();
    new EndSignals(&app);
    QTimer::singleShot(0, &window, [&] { openAsked(window, line); });
    return QApplication::exec();
}
